"""The capstone: open problems with a score, in three tracks.

`tracks` says what each asks for. `gate` lets only right answers through, and `scoring` times them
and gives tiers; `running` does both in processes of their own. `submission` is the file that is
handed in. `report` and `leaderboard` are pages made of scores.
"""

TRACKS = ("product", "depthwise", "attention")
