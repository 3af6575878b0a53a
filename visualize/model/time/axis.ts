/** A range of the trace's clock, in milliseconds. */
export interface View {
  readonly from: number;
  readonly to: number;
}

/** The trace's clock counts milliseconds. */
const minViewMs = 5;
const steps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];

export function completeView(firstTime: number, lastTime: number): View {
  const margin = Math.max((lastTime - firstTime) * 0.01, minViewMs / 2);
  return { from: firstTime - margin, to: lastTime + margin };
}

/** The time `centre` keeps its position. A `factor` below 1 zooms in. */
export function zoomView({ from, to }: View, centre: number, factor: number, wholeView: View): View {
  const length = Math.min(Math.max((to - from) * factor, minViewMs), wholeView.to - wholeView.from);
  const centreFraction = to === from ? 0.5 : (centre - from) / (to - from);
  return clampedView({ from: centre - centreFraction * length, to: centre + (1 - centreFraction) * length }, wholeView);
}

export function shiftedView({ from, to }: View, offsetMs: number, wholeView: View): View {
  return clampedView({ from: from + offsetMs, to: to + offsetMs }, wholeView);
}

export function viewIncluding(view: View, t: number, wholeView: View): View {
  if (t >= view.from && t <= view.to) return view;
  const length = view.to - view.from;
  return clampedView({ from: t - length / 2, to: t + length / 2 }, wholeView);
}

function clampedView(view: View, wholeView: View): View {
  const length = Math.min(view.to - view.from, wholeView.to - wholeView.from);
  const from = Math.min(Math.max(view.from, wholeView.from), wholeView.to - length);
  return { from, to: from + length };
}

export function ticksOf(
  { from, to }: View,
  width: number,
  minGapPixels = 90,
): { readonly step: number; readonly times: number[] } {
  const minStep = ((to - from) * minGapPixels) / Math.max(width, 1);
  const step = steps.find((candidate) => candidate >= minStep) ?? Math.ceil(minStep / 86_400_000) * 86_400_000;
  const times: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) times.push(t);
  return { step, times };
}

/** Returns text such as `250 ms`, `12 s`, `1:30`, `2:00:00`. */
export function tickText(t: number, step: number): string {
  if (t < 60_000 && t > -60_000) {
    if (step < 1_000 && t < 1_000) return `${Math.round(t)} ms`;
    return `${step < 1_000 ? (t / 1_000).toFixed(step < 10 ? 3 : step < 100 ? 2 : 1) : Math.round(t / 1_000)} s`;
  }
  const seconds = Math.floor(t / 1_000);
  const twoDigits = (n: number): string => String(n).padStart(2, '0');
  const fraction = step < 1_000 ? (t % 1_000) / 1_000 : 0;
  const secondsText =
    step < 1_000 ? `${twoDigits(seconds % 60)}${fraction.toFixed(3).slice(1)}` : twoDigits(seconds % 60);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes}:${secondsText}`
    : `${Math.floor(minutes / 60)}:${twoDigits(minutes % 60)}:${secondsText}`;
}
