"""The command `phalanx report`: runs as one HTML page."""

from phalanx.files import write_text
from phalanx.show.drawing.chart import check_installed
from phalanx.show.report.config import ReportConfig
from phalanx.show.report.report import report_page


def main(config: ReportConfig) -> int:
    """Write the page, and say where it is."""
    check_installed()
    page = report_page(config.runs, episodes=config.episodes, replays=config.replays)
    write_text(config.out, page)
    print(f"{config.out}: {len(page.encode()) / 1000:,.0f} kB; open it in a browser")
    return 0
