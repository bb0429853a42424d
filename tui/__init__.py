"""The monitor: sources, session, verdict, faces. Only app, screens and widgets import textual."""
