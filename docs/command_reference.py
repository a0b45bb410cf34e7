"""The reference of the command line, made of the commands themselves.

``{command-reference}`` is replaced by a section for every command of a program: what it does, its
options with what each means, its examples.
"""

import re
from importlib import import_module
from typing import Any

import typer
from docutils import nodes
from rich.text import Text
from sphinx.util.docutils import SphinxDirective


class CommandReference(SphinxDirective):
    """The commands of the program that is the argument, module:application."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A section each."""
        module, _, name = self.arguments[0].partition(":")
        application = typer.main.get_command(getattr(import_module(module), name))
        commands: Any = application.commands  # type: ignore[attr-defined]
        sections = [described(f"{application.name} {key}", one) for key, one in commands.items()]
        return self.parse_text_to_nodes("\n\n".join(sections), allow_section_headings=True)


def described(name: str, command: Any) -> str:
    """One command in Markdown."""
    about = literal(command.help)
    panels: dict[str, list[str]] = {}
    for option in command.params:
        panel = getattr(option, "rich_help_panel", None) or "Options"
        spelled = ", ".join(f"`{one}`" for one in option.opts if one.startswith("--"))
        usual = option.default
        known = usual not in (None, False, "") and not callable(usual)
        said = literal(option.help or "") + (f" Default: {usual}." if known else "")
        panels.setdefault(panel, []).append(f"| {spelled} | {said.replace('|', chr(92) + '|')} |")
    tables = [
        "\n".join([f"**{title}**\n", "| option | meaning |", "|---|---|", *rows])
        for title, rows in panels.items()
    ]
    examples = "\n".join((command.epilog or "").split("\n\n")[1:])
    parts = [f"## {name}", about, f"```sh\n{examples}\n```", *tables]
    return "\n\n".join(parts)


def literal(text: str) -> str:
    """Help as Markdown that shows the same: names of code with underscores stay as they are."""
    text = Text.from_markup(text).plain
    text = re.sub(r"(?<!`)(--[a-z][a-z0-9-]*)", r"`\1`", text)
    text = re.sub(r"(?<![\w`*.-])((?:\w+[._*])+\w+)", r"`\1`", text)
    return text.replace("<", "&lt;").replace(r"[", r"\[")


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
