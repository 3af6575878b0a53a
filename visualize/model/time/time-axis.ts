/** Folded times take as much space as their labels, whatever their duration. */
import { textWidth } from '../../../src/debugger/statechart/text-width.ts';
import type { IdleTime } from '../recording/idle-time.ts';
import { firstIndexAfter } from '../recording/sorted.ts';
import { dayText, wallClockText, wallClockTicks } from '../recording/words.ts';
import { ticksOf, tickText, type View } from './axis.ts';

interface PlacedFold extends IdleTime {
  readonly shownFrom: number;
}

/** Outside of the folds, a millisecond has the same length as in the trace. */
export class FoldedClock {
  readonly foldMs: number;
  readonly folds: readonly PlacedFold[];

  /** @param folds in order, not overlapping */
  constructor(folds: readonly IdleTime[], foldMs: number) {
    this.foldMs = foldMs;
    let cutMs = 0;
    this.folds = folds.map(({ from, to }) => {
      const placedFold = { from, to, shownFrom: from - cutMs };
      cutMs += to - from - foldMs;
      return placedFold;
    });
  }

  toShownTime(t: number): number {
    const fold = this.folds[firstIndexAfter(this.folds, ({ from }) => from > t) - 1];
    if (fold === undefined) return t;
    const { from, to, shownFrom } = fold;
    if (t >= to) return shownFrom + this.foldMs + (t - to);
    return shownFrom + ((t - from) / (to - from)) * this.foldMs;
  }

  timeOf(shownTime: number): number {
    const fold = this.folds[firstIndexAfter(this.folds, ({ shownFrom }) => shownFrom > shownTime) - 1];
    if (fold === undefined) return shownTime;
    const { from, to, shownFrom } = fold;
    const offsetInFold = shownTime - shownFrom;
    return offsetInFold >= this.foldMs
      ? to + (offsetInFold - this.foldMs)
      : from + (offsetInFold / this.foldMs) * (to - from);
  }
}

export function foldedClock(
  folds: readonly IdleTime[],
  pixels: number,
  wholeSpan: { readonly from: number; readonly to: number },
  width: number,
): FoldedClock {
  const foldedMs = folds.reduce((sum, { from, to }) => sum + (to - from), 0);
  const activeMs = Math.max(wholeSpan.to - wholeSpan.from - foldedMs, 1);
  return new FoldedClock(folds, (pixels * activeMs) / Math.max(width - folds.length * pixels, 1));
}

/** A part of the folded clock, drawn at a width in pixels. */
export class TimeAxis {
  readonly view: View;
  readonly width: number;
  /** The trace's times at both ends. */
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
    return (this.#clock.toShownTime(t) - this.view.from) * this.#scale;
  }

  timeOf(x: number): number {
    return this.#clock.timeOf(this.view.from + x / this.#scale);
  }

  get folds(): readonly { readonly from: number; readonly to: number; readonly x: number; readonly width: number }[] {
    return this.#clock.folds
      .filter(({ from, to }) => from < this.to && to > this.from)
      .map(({ from, to }) => {
        const x = Math.max(0, this.xOf(from));
        return { from, to, x, width: Math.min(this.width, this.xOf(to)) - x };
      });
  }
}

export interface AxisTick {
  readonly t: number;
  readonly x: number;
  /** Empty if there is no space. */
  readonly text: string;
  /** The date is added where a day begins and after each fold. */
  readonly wall: string;
  /** After a fold, the wall clock may be below the label of the fold. */
  readonly wallX: number;
}

const labelPixels = 90;
const labelOffset = 4;
const textFont = { size: 11 };
const wallFont = { size: 10 };

/** Round times, and the times at which activity resumes after idle times. */
export function axisTicks(axis: TimeAxis, startedAt: string): AxisTick[] {
  const { step } = ticksOf(axis.view, axis.width, labelPixels);
  const segmentStarts = [undefined, ...axis.folds];
  const axisTickList: AxisTick[] = [];
  let freeFromX = Number.NEGATIVE_INFINITY;
  for (const [i, previousFold] of segmentStarts.entries()) {
    const nextFold = segmentStarts[i + 1];
    const segment = {
      from: previousFold?.to ?? axis.from,
      to: nextFold?.from ?? axis.to,
      end: nextFold?.x ?? axis.width,
    };
    if (previousFold !== undefined) {
      const tick = tickAfterFold(axis, previousFold, segment.end, step, startedAt);
      if (tick !== undefined) axisTickList.push(tick);
      freeFromX = (tick?.x ?? previousFold.x + previousFold.width) + labelPixels;
    }
    const times = roundTimes(segment.from, segment.to, step).filter((t) => {
      const x = axis.xOf(t);
      // A label that ends after the fold starts would overlap the fold's label.
      return x >= freeFromX && (nextFold === undefined || x + labelPixels <= segment.end);
    });
    const wallLabels =
      previousFold === undefined
        ? wallClockTicks(startedAt, times, step)
        : times.map((t) => timeOfDayText(startedAt, t, step));
    for (const [tickIndex, t] of times.entries()) {
      const x = axis.xOf(t);
      // A label cut off at the end of the timeline would be wrong.
      const fittingLabel = (label: string, font: { readonly size: number }): string =>
        x + labelOffset + textWidth(label, font) <= segment.end ? label : '';
      const [text, wallLabel] = [
        fittingLabel(tickText(t, step), textFont),
        fittingLabel(wallLabels[tickIndex]!, wallFont),
      ];
      axisTickList.push({ t, x, text, wall: wallLabel, wallX: x + labelOffset });
    }
  }
  return axisTickList;
}

/** The label may begin below the fold, whose own label is one line higher. */
function tickAfterFold(
  axis: TimeAxis,
  fold: { readonly to: number; readonly x: number },
  end: number,
  step: number,
  startedAt: string,
): AxisTick | undefined {
  const x = axis.xOf(fold.to);
  const exactText = tickText(fold.to, Math.max(step, 1_000));
  const text = x + labelOffset + textWidth(exactText, textFont) <= end ? exactText : '';
  const day = dayText(startedAt, fold.to);
  const time = timeOfDayText(startedAt, fold.to, 1_000);
  for (const wall of [`${day} ${time}`, `${day} ${time.slice(0, 5)}`, day]) {
    const wallX = Math.min(x + labelOffset, end - textWidth(wall, wallFont) - 2);
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
