"""Live runs: diagrams that follow a clock, their partners, their page, the widget of notebooks."""
