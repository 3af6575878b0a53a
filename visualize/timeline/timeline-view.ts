/** What part of the timeline is shown, and how wide it is drawn. */
import { computed, effect, signal, untracked } from '@preact/signals';
import { fitting, moved, showing, type View, zoomed } from '../model/axis.ts';
import { connection } from '../model/connection.ts';
import { place, recording, size } from '../model/place.ts';
import { programTime } from '../model/program-clock.ts';

/** Pixels of the part where time runs. */
export const width = signal(800);

/** What was zoomed to; everything when undefined. */
const zoom = signal<View | undefined>(undefined);

/** Of a live program: how far its time had gone when the timeline was drawn last. */
const reached = signal(0);
const tickMs = 1_000;

/** Time of the last record; of a live program its own time, which goes on while it tells nothing. */
export const end = computed(() => {
  const last = size.value > 0 ? (recording.value?.timeAt(size.value - 1) ?? 0) : 0;
  return connection.value.kind === 'live' ? Math.max(last, reached.value) : last;
});

const whole = computed<View>(() => fitting(recording.value?.timeAt(0) ?? 0, end.value));

export const view = computed<View>(() => zoom.value ?? whole.value);

export const isZoomed = computed(() => zoom.value !== undefined);

export function zoomBy(factor: number, at = (view.value.from + view.value.to) / 2): void {
  set(zoomed(view.value, at, factor, whole.value));
}

export function pan(by: number): void {
  if (zoom.value !== undefined) set(moved(view.value, by, whole.value));
}

export function zoomTo(from: number, to: number): void {
  set(zoomed({ from, to }, (from + to) / 2, 1, whole.value));
}

export function fit(): void {
  zoom.value = undefined;
}

export function timeOf(x: number): number {
  const { from, to } = view.value;
  return from + (x / width.value) * (to - from);
}

export function xOf(t: number): number {
  const { from, to } = view.value;
  return ((t - from) / (to - from)) * width.value;
}

/** From now on the place stays in view, and another trace is shown as a whole. */
export function keepInView(): void {
  effect(() => {
    recording.value;
    zoom.value = undefined;
  });
  effect(() => {
    const open = recording.value;
    const shown = zoom.peek();
    if (open === undefined || shown === undefined || connection.peek().kind === 'opening') return;
    zoom.value = showing(shown, open.timeAt(place.value), whole.peek());
  });
}

/** From now on the timeline of a live program grows with its time. It is drawn anew when it is a pixel longer. */
export function keepGrowing(): void {
  effect(() => {
    recording.value;
    reached.value = 0;
    if (connection.value.kind !== 'live') return undefined;
    const grow = (): void => {
      const now = programTime() ?? 0;
      const { from, to } = whole.peek();
      if (now - untracked(() => end.value) > (to - from) / width.peek()) reached.value = now;
    };
    grow();
    const timer = setInterval(grow, tickMs);
    return () => clearInterval(timer);
  });
}

function set(next: View): void {
  const { from, to } = whole.value;
  zoom.value = next.to - next.from >= to - from ? undefined : next;
}
