"""Where things are in the checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# as they are written, without what the scripts of the gallery make
PAGES = sorted(p for p in DOCS.rglob("*.md") if not {"_build", "gallery"} & set(p.parts))
