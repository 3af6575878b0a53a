/** From times to the screen and back: folded times take as much room as their words need, whatever their length. */
import { textWidth } from '../../../src/debugger/statechart/text-width.ts';
import type { IdleTime } from '../recording/idle-time.ts';
import { firstAfter } from '../recording/sorted.ts';
import { dayText, wallClockText, wallClockTicks } from '../recording/words.ts';
import { ticks, tickText, type View } from './axis.ts';

/** A fold, and where it begins on the folded clock. */
interface PlacedFold extends IdleTime {
  readonly shownFrom: number;
}

/** The trace's clock with its idle times cut short. Milliseconds of it are as long as those of the trace but for the folds. */
export class FoldedClock {
  /** How long each fold is on this clock. */
  readonly foldMs: number;
  readonly folds: readonly PlacedFold[];

  /** @param folds in order, not overlapping */
  constructor(folds: readonly IdleTime[], foldMs: number) {
    this.foldMs = foldMs;
    let cut = 0;
    this.folds = folds.map(({ from, to }) => {
      const placed = { from, to, shownFrom: from - cut };
      cut += to - from - foldMs;
      return placed;
    });
  }

  /** A time of the trace on this clock. */
  shown(t: number): number {
    const before = this.folds[firstAfter(this.folds, ({ from }) => from > t) - 1];
    if (before === undefined) return t;
    const { from, to, shownFrom } = before;
    if (t >= to) return shownFrom + this.foldMs + (t - to);
    return shownFrom + ((t - from) / (to - from)) * this.foldMs;
  }

  /** And back. */
  timeOf(shown: number): number {
    const before = this.folds[firstAfter(this.folds, ({ shownFrom }) => shownFrom > shown) - 1];
    if (before === undefined) return shown;
    const { from, to, shownFrom } = before;
    const into = shown - shownFrom;
    return into >= this.foldMs ? to + (into - this.foldMs) : from + (into / this.foldMs) * (to - from);
  }
}

/** The folded clock of a whole trace on a screen of some pixels. */
export function foldedClock(
  folds: readonly IdleTime[],
  pixels: number,
  whole: { readonly from: number; readonly to: number },
  width: number,
): FoldedClock {
  const folded = folds.reduce((sum, { from, to }) => sum + (to - from), 0);
  const active = Math.max(whole.to - whole.from - folded, 1);
  return new FoldedClock(folds, (pixels * active) / Math.max(width - folds.length * pixels, 1));
}

/** A part of the folded clock, drawn in some pixels. */
export class TimeAxis {
  readonly view: View;
  readonly width: number;
  /** The trace's times at its ends. */
  readonly from: number;
  readonly to: number;
  readonly #clock: FoldedClock;
  readonly #scale: number;

  constructor(clock: FoldedClock, view: View, width: number) {
    this.view = view;
    this.width = width;
    this.#clock = clock;
    this.#scale = width / (view.to - view.from);
    this.from = clock.timeOf(view.from);
    this.to = clock.timeOf(view.to);
  }

  xOf(t: number): number {
    return (this.#clock.shown(t) - this.view.from) * this.#scale;
  }

  timeOf(x: number): number {
    return this.#clock.timeOf(this.view.from + x / this.#scale);
  }

  /** The folds that are seen, each with its ends on the screen. */
  get folds(): readonly { readonly from: number; readonly to: number; readonly x: number; readonly width: number }[] {
    return this.#clock.folds
      .filter(({ from, to }) => from < this.to && to > this.from)
      .map(({ from, to }) => {
        const x = Math.max(0, this.xOf(from));
        return { from, to, x, width: Math.min(this.width, this.xOf(to)) - x };
      });
  }
}

/** A labelled place on the axis. */
export interface AxisTick {
  readonly t: number;
  readonly x: number;
  /** Since the program's start; empty where there is no room for it. */
  readonly text: string;
  /** Of the wall clock; with the date where a day begins, and behind each fold. */
  readonly wall: string;
  /** Where that begins: behind a fold it may stand below the words of the fold. */
  readonly wallX: number;
}

/** Room for a tick's words. */
const labelPixels = 90;
const besideTick = 4;
const textFont = { size: 11 };
const wallFont = { size: 10 };

/** Round times, and the times at which something happens again after idle ones. */
export function axisTicks(axis: TimeAxis, startedAt: string): AxisTick[] {
  const { step } = ticks(axis.view, axis.width, labelPixels);
  const starts = [undefined, ...axis.folds];
  const found: AxisTick[] = [];
  let free = Number.NEGATIVE_INFINITY;
  for (const [i, before] of starts.entries()) {
    const after = starts[i + 1];
    const stretch = { from: before?.to ?? axis.from, to: after?.from ?? axis.to, end: after?.x ?? axis.width };
    if (before !== undefined) {
      const tick = tickBehindFold(axis, before, stretch.end, step, startedAt);
      if (tick !== undefined) found.push(tick);
      free = (tick?.x ?? before.x + before.width) + labelPixels;
    }
    const times = roundTimes(stretch.from, stretch.to, step).filter((t) => {
      const x = axis.xOf(t);
      // What does not end before the fold would stand on its words.
      return x >= free && (after === undefined || x + labelPixels <= stretch.end);
    });
    const walls =
      before === undefined
        ? wallClockTicks(startedAt, times, step)
        : times.map((t) => timeOfDayText(startedAt, t, step));
    for (const [at, t] of times.entries()) {
      const x = axis.xOf(t);
      // At the end of the screen half a word is a wrong one.
      const fits = (words: string, font: { readonly size: number }): string =>
        x + besideTick + textWidth(words, font) <= stretch.end ? words : '';
      const [text, wall] = [fits(tickText(t, step), textFont), fits(walls[at]!, wallFont)];
      found.push({ t, x, text, wall, wallX: x + besideTick });
    }
  }
  return found;
}

/** It may begin below the fold, which has its own words in the line above; where even that is too narrow, there is none. */
function tickBehindFold(
  axis: TimeAxis,
  fold: { readonly to: number; readonly x: number },
  end: number,
  step: number,
  startedAt: string,
): AxisTick | undefined {
  const x = axis.xOf(fold.to);
  const exact = tickText(fold.to, Math.max(step, 1_000));
  const text = x + besideTick + textWidth(exact, textFont) <= end ? exact : '';
  const day = dayText(startedAt, fold.to);
  const time = timeOfDayText(startedAt, fold.to, 1_000);
  for (const wall of [`${day} ${time}`, `${day} ${time.slice(0, 5)}`, day]) {
    const wallX = Math.min(x + besideTick, end - textWidth(wall, wallFont) - 2);
    if (wallX >= fold.x + 2) return { t: fold.to, x, text, wall, wallX };
  }
  return undefined;
}

function timeOfDayText(startedAt: string, t: number, step: number): string {
  const time = wallClockText(startedAt, t).split(' ').at(-1)!;
  return step < 1_000 ? time : time.slice(0, 8);
}

function roundTimes(from: number, to: number, step: number): number[] {
  const times: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) times.push(t);
  return times;
}
