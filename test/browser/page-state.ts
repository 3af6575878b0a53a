/** What the page shows, read as a person reads it: from what is drawn. */
import type { CDPSession, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { TraceHeader, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { TraceState } from '../../src/runtime/trace/trace-state.ts';
import { referenceWork, slowness } from '../harness/slowness.ts';

export type ActorsShown = Readonly<Record<string, string>>;

/** The living actors and their states, as the list of actors tells them. */
export function actorsShown(page: Page): Promise<ActorsShown> {
  return page
    .locator('[data-actor][data-state-name]')
    .evaluateAll((elements) =>
      Object.fromEntries(
        elements.map((element) => [element.getAttribute('data-actor')!, element.getAttribute('data-state-name')!]),
      ),
    );
}

/** Paths of the states that are lit in the chart of the chosen actor, sorted. */
export function litStates(page: Page): Promise<string[]> {
  return page
    .locator('.chart-viewport .state.active')
    .evaluateAll((elements) =>
      elements.map((element) => element.getAttribute('data-path')!).filter((path) => path !== ''),
    );
}

/** The place that is looked at: the number of the record that happened last there. Undefined before the first. */
export function seqShown(page: Page): Promise<number | undefined> {
  return page.evaluate(() => {
    const { chartpilot } = globalThis as unknown as PageHooks;
    return chartpilot.recording()?.seqAt(chartpilot.place());
  });
}

/** How many records the page has. */
export function recordsShown(page: Page): Promise<number> {
  return page.evaluate(() => (globalThis as unknown as PageHooks).chartpilot.recording()?.length ?? 0);
}

/** Waits until the whole trace is there and drawn. @returns milliseconds since the page was asked for */
export async function opened(page: Page): Promise<number> {
  const done = await page.waitForFunction(() => (globalThis as unknown as InPage).inPage.openedAfterMs(), undefined, {
    timeout: 120_000,
  });
  return (await done.jsonValue())!;
}

/**
 * For each record after the one with this number that was drawn as it came: milliseconds from when it happened to the
 * frame that shows it.
 */
export function drawnAfterMs(page: Page, after: number): Promise<number[]> {
  return page.evaluate((last) => {
    const { chartpilot } = globalThis as unknown as PageHooks;
    const open = chartpilot.recording()!;
    // The program runs on this host: its clock is ours.
    const startedAt = Date.parse(open.header.startedAt);
    return chartpilot.drawn
      .filter(({ seq }) => seq > last)
      .map(({ seq, at }) => at - startedAt - open.timeAt(open.indexOf(seq)!));
  }, after);
}

/** From now on the page takes note of every state in which an actor is shown. */
export async function watchActors(page: Page): Promise<void> {
  await page.evaluate(() => (globalThis as unknown as InPage).inPage.watchActors());
}

/** The states in which each actor was shown since {@link watchActors}, in their order. */
export function statesSeen(page: Page): Promise<Readonly<Record<string, readonly string[]>>> {
  return page.evaluate(() => (globalThis as unknown as InPage).inPage.statesSeen);
}

/** Until nothing is under way on the page any more. */
export async function atRest(page: Page): Promise<void> {
  await page.evaluate(() => (globalThis as unknown as PageHooks).chartpilot.idle());
}

/** Until what was done is drawn. */
export async function nextFrame(page: Page): Promise<void> {
  await page.evaluate(() => (globalThis as unknown as InPage).inPage.nextFrame());
}

/** By the slider, as a person goes there. */
export async function goToShare(page: Page, share: number): Promise<void> {
  const index = Math.floor(((await recordsShown(page)) - 1) * share);
  await page.locator('input[type=range]#place').fill(String(index));
  await nextFrame(page);
}

/** The states that the page shows are those to which the trace leads. */
export async function expectTruth(page: Page, of: string): Promise<void> {
  await expect.poll(async () => actorsShown(page)).toEqual(actorsAt(of, await seqShown(page)));
}

const clocks = new WeakMap<Page, CDPSession>();

/** From now on the work of a page's main thread is counted. */
export async function countWork(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  clocks.set(page, session);
}

/** Milliseconds of processor time since {@link countWork}: what else the machine does is not in it. */
export async function mainThreadMs(page: Page): Promise<number> {
  const { metrics } = await clocks.get(page)!.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'TaskDuration')!.value * 1_000;
}

/** How slow the machine is for a page just now, in processor time of its main thread. Begins with {@link countWork}. */
export function slownessOf(page: Page): Promise<number> {
  return slowness(async () => {
    const before = await mainThreadMs(page);
    await page.evaluate(referenceWork);
    return (await mainThreadMs(page)) - before;
  });
}

/** Bytes that its JavaScript holds after a collection of garbage, columns included. */
export async function heldBytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  try {
    await session.send('HeapProfiler.collectGarbage');
    const held = (await session.send('Runtime.getHeapUsage')) as { usedSize: number; backingStorageSize?: number };
    return held.usedSize + (held.backingStorageSize ?? 0);
  } finally {
    await session.detach();
  }
}

/** How often a key repeats in {@link stepRate}. */
export const stepsHeld = 90;

/** Frames a second while a key is held down: one step in each frame. */
export function stepRate(page: Page, key: string): Promise<number> {
  return page.evaluate(([held, times]) => (globalThis as unknown as InPage).inPage.holdKey(held, times), [
    key,
    stepsHeld,
  ] as const);
}

/** As the browser gives files that were held over the page and let go. */
export async function drop(
  page: Page,
  files: readonly { readonly name: string; readonly body: string | Buffer }[],
): Promise<void> {
  const given = files.map(({ name, body }) => ({ name, base64: Buffer.from(body).toString('base64') }));
  await page.evaluate((list) => (globalThis as unknown as InPage).inPage.drop(list), given);
}

/** What {@link actorsShown} must be at a record, by the trace itself: living charts and their states. */
export function actorsAt(trace: string, seq: number | undefined): ActorsShown {
  const [header, ...records] = trace.trimEnd().split('\n');
  const state = TraceState.of(JSON.parse(header!) as TraceHeader);
  for (const line of records) {
    const record = JSON.parse(line) as TraceRecord;
    if (record.seq > (seq ?? 0)) break;
    state.apply(record);
  }
  const charts = [...state.actors.values()].filter(({ machine }) => machine !== undefined);
  return Object.fromEntries(charts.map((actor) => [actor.actor, actor.state]));
}

/** What the page offers to tests (`visualize/main.tsx`). */
export interface PageHooks {
  readonly chartpilot: {
    recording():
      | {
          readonly length: number;
          seqAt(index: number): number | undefined;
          timeAt(index: number): number;
          indexOf(seq: number): number | undefined;
          readonly header: { readonly startedAt: string };
        }
      | undefined;
    place(): number;
    readonly drawn: readonly { readonly seq: number; readonly at: number }[];
    idle(): Promise<void>;
    /** Milliseconds that it took to open the source. */
    readonly opened: number | undefined;
  };
}

/** What tests put there themselves (`in-page.js`). */
interface InPage {
  readonly inPage: {
    openedAfterMs(): number | undefined;
    nextFrame(): Promise<unknown>;
    holdKey(key: string, frames: number): Promise<number>;
    watchActors(): void;
    drop(files: readonly { readonly name: string; readonly base64: string }[]): void;
    readonly statesSeen: Readonly<Record<string, readonly string[]>>;
  };
}
