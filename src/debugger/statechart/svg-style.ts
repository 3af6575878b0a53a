/** The page sets the colours as `--chart-…`. */
const lightPalette = {
  paper: '#ffffff',
  ink: '#1d2330',
  line: '#7a8499',
  box: '#f4f6fa',
  muted: '#5b6475',
  active: '#cfe8d8',
  'active-ink': '#0b5a35',
  taken: '#c2410c',
  timer: '#8a5a00',
};
const darkPalette: typeof lightPalette = {
  paper: '#14171d',
  ink: '#e4e8f0',
  line: '#8a93a6',
  box: '#20252e',
  muted: '#a3acbd',
  active: '#12452e',
  'active-ink': '#7be0ab',
  taken: '#fb923c',
  timer: '#e5b454',
};

// The page's colours have precedence in both modes, therefore these are fallbacks.
const colours = (fallbacks: typeof lightPalette): string =>
  Object.entries(fallbacks)
    .map(([name, colour]) => `--c-${name}:var(--chart-${name},${colour})`)
    .join(';');

export const svgStyle: string = `
.statechart{${colours(lightPalette)};font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:12px}
@media (prefers-color-scheme:dark){.statechart{${colours(darkPalette)}}}
.statechart .paper{fill:var(--c-paper)}
.statechart text{fill:var(--c-ink)}
.statechart .name{font-size:13px;font-weight:600}
.statechart .box{fill:var(--c-box);stroke:var(--c-line);stroke-width:1.25}
.statechart .compound>.box,.statechart .parallel>.box{fill:none}
.statechart .region>.box{stroke-dasharray:6 4}
.statechart .inner{fill:none;stroke:var(--c-line)}
.statechart .arrow{fill:none;stroke:var(--c-line);stroke-width:1.25}
.statechart .head,.statechart .dot{fill:var(--c-line)}
.statechart .keyword,.statechart .guard,.statechart .action{fill:var(--c-muted)}
.statechart .timer-text{fill:var(--c-timer)}
.statechart .countdown{fill:var(--c-timer);opacity:.3;transform:scaleX(0);transform-box:fill-box;transform-origin:left}
.statechart .state.active>.box{fill:var(--c-active);stroke:var(--c-active-ink);stroke-width:2}
.statechart .state.compound.active>.box,.statechart .state.parallel.active>.box{fill:none}
.statechart .state.active>.name{fill:var(--c-active-ink)}
.statechart .way>.transition:not(:first-child,.taken,.last)>path{visibility:hidden}
.statechart .way:has(>.taken,>.last)>.transition:not(.taken,.last)>path{visibility:hidden}
.statechart .taken .arrow{stroke:var(--c-taken);stroke-width:2.25}
.statechart .taken .head{fill:var(--c-taken)}
.statechart .taken text,.statechart .taken tspan{fill:var(--c-taken)}
`;
