"""``python -m tests.explore docs/figures/explorer.png`` takes the picture of the explorer, with the
dots of a simulation."""

import sys
import time
from pathlib import Path

from tests.explore.browser import open_page
from tests.explore.explorer import button, explorer, load, press, shows

with (
    explorer() as (address, _),
    open_page(address, height=1180) as page,
):
    load(page)
    press(page, button("command line", role="tab"))
    press(page, button("simulate networks"))
    page.wait(shows("replica-validate simulate"))
    page.run("document.activeElement.blur()")
    time.sleep(1)  # what is pressed fades
    page.picture(Path(sys.argv[1]))
