"""Write the repository's address where an index page needs it: ``addresses.py ADDRESS TAG``.

Links and images of README.md become absolute, and the project's addresses are added to setup.cfg.
"""

import re
import sys
from pathlib import Path

RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)")


def absolute(text: str, address: str, tag: str) -> str:
    """Markdown whose links and images work anywhere: files as they were at ``tag``."""

    def link(found: re.Match[str]) -> str:
        image, label, path = found.groups()
        return f"{image}{label}({address}/{'raw' if image else 'blob'}/{tag}/{path})"

    return RELATIVE.sub(link, text)


def main(address: str, tag: str) -> None:
    """Change both files in the working folder."""
    readme, settings = Path("README.md"), Path("setup.cfg")
    readme.write_text(absolute(readme.read_text("utf-8"), address, tag), "utf-8")
    urls = {
        "Source": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
    }
    lines = "".join(f"    {name} = {url}\n" for name, url in urls.items())
    text = settings.read_text("utf-8")
    settings.write_text(text.replace("project_urls =\n", f"project_urls =\n{lines}"), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
