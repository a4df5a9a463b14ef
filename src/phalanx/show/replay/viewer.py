"""Which files of `web/` show an episode, in the order in which a page needs them.

    page(title, '<main id="replay"></main>', styles=VIEWER_STYLES,
         scripts=[*VIEWER_SCRIPTS, REPLAY_PAGE], data={"trajectory": trajectory})

Several episodes in one page: leave REPLAY_PAGE out and call `phalanx.replay(element, trajectory)`.
"""

VIEWER_STYLES = ("replay.css", "host.css", "strip.css")
VIEWER_SCRIPTS = (
    "element.js",
    "trajectory.js",
    "card.js",
    "network.js",
    "tracks.js",
    "choices.js",
    "turn_panel.js",
    "turn_words.js",
    "strip.js",
    "controls.js",
    "dialogs.js",
    "replay.js",
)
REPLAY_PAGE = "replay_page.js"  # draws the data element "trajectory" into #replay
