"""The text side alone is the text side of the whole model, and costs no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.models.catalog import TARGETS, WheelModel
from engine.models.checkpoint import load_target
from engine.models.checkpoint_error import CheckpointError
from engine.models.text_assets import load_text

CONVERSATION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße an 世界 🙂"}]
FETCHED = [name for name, model in TARGETS.items() if not isinstance(model, WheelModel) or model.is_fetched]


@pytest.mark.parametrize("name", FETCHED)
def test_equals_that_of_the_whole_model(name: str) -> None:
    whole, alone = load_target(name), load_text(name)
    assert whole.chat_template is not None
    assert alone.chat_template is not None
    prompt = alone.chat_template.render(CONVERSATION)
    assert prompt == whole.chat_template.render(CONVERSATION)
    assert alone.tokenizer.encode(prompt) == whole.tokenizer.encode(prompt)
    assert alone.tokenizer.first_difference(whole.tokenizer) is None
    assert alone.tokenizer.eos_token_ids == whole.tokenizer.eos_token_ids


@pytest.mark.parametrize("name", FETCHED)
def test_torch_is_not_imported(name: str) -> None:
    program = (
        "import sys; from engine.models.text_assets import load_text; import engine.server.server_process; "
        f"load_text({name!r}); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3], check=False).returncode == 0


def test_an_unknown_name_is_explained() -> None:
    with pytest.raises(CheckpointError, match="neither a built-in name nor a directory"):
        load_text("no-such-model")
