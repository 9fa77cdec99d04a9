"""What the engine and the workbench share: event schema, bus, control, discovery."""
