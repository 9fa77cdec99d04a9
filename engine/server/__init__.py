"""The server process: HTTP in OpenAI's dialect in front, the engine process and its supervisor behind."""
