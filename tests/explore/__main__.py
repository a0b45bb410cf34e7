"""``python -m tests.explore docs/figures/explorer.png`` takes the picture of the explorer, with the
dots of a simulation."""

import sys
from pathlib import Path

from tests.explore.browser import open_page
from tests.explore.explorer import button, explorer, load, press, shows

with (
    explorer() as (address, _),
    open_page(address, height=1180) as page,
):
    load(page)
    press(page, button("command line"))
    press(page, button("simulate networks"))
    page.wait(shows("replica-validate"))
    page.run("document.activeElement.blur()")
    page.picture(Path(sys.argv[1]))
