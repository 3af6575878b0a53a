/** Reads the state of the page from its elements. */
import type { CDPSession, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { TraceHeader, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { TraceState } from '../../src/runtime/trace/trace-state.ts';
import { referenceWork, slowness } from '../harness/slowness.ts';

export type ShownActors = Readonly<Record<string, string>>;

/** The living actors and their states in the list of actors. */
export function readShownActors(page: Page): Promise<ShownActors> {
  return page
    .locator('[data-actor][data-state-name]')
    .evaluateAll((elements) =>
      Object.fromEntries(
        elements.map((element) => [element.getAttribute('data-actor')!, element.getAttribute('data-state-name')!]),
      ),
    );
}

/** Sorted paths of the highlighted states in the chart of the chosen actor. */
export function highlightedStates(page: Page): Promise<string[]> {
  return page
    .locator('.chart-viewport .state.active')
    .evaluateAll((elements) =>
      elements.map((element) => element.getAttribute('data-path')!).filter((path) => path !== ''),
    );
}

/** `seq` of the record at the current place; `undefined` before the first. */
export function shownSeq(page: Page): Promise<number | undefined> {
  return page.evaluate(() => {
    const { chartpilot } = globalThis as unknown as PageHooks;
    return chartpilot.recording()?.seqAt(chartpilot.place());
  });
}

export function shownRecordCount(page: Page): Promise<number> {
  return page.evaluate(() => (globalThis as unknown as PageHooks).chartpilot.recording()?.length ?? 0);
}

/** Waits until the complete trace is loaded and drawn. @returns milliseconds since the request for the page */
export async function waitUntilOpened(page: Page): Promise<number> {
  const openedAfter = await page.waitForFunction(
    () => (globalThis as unknown as InPage).inPage.openedAfterMs(),
    undefined,
    {
      timeout: 120_000,
    },
  );
  return (await openedAfter.jsonValue())!;
}

/** For each record after this `seq` that was drawn while following the trace: milliseconds from the record to the frame that shows it. */
export function drawnAfterMs(page: Page, afterSeq: number): Promise<number[]> {
  return page.evaluate((last) => {
    const { chartpilot } = globalThis as unknown as PageHooks;
    const openRecording = chartpilot.recording()!;
    // The program runs on this host, so both have the same clock.
    const startedAt = Date.parse(openRecording.header.startedAt);
    return chartpilot.drawn
      .filter(({ seq }) => seq > last)
      .map(({ seq, at }) => at - startedAt - openRecording.timeAt(openRecording.indexOf(seq)!));
  }, afterSeq);
}

/** Makes the page record every shown state of an actor. */
export async function watchActors(page: Page): Promise<void> {
  await page.evaluate(() => (globalThis as unknown as InPage).inPage.watchActors());
}

/** The shown states of each actor since {@link watchActors}, in order. */
export function readSeenStates(page: Page): Promise<Readonly<Record<string, readonly string[]>>> {
  return page.evaluate(() => (globalThis as unknown as InPage).inPage.statesSeen);
}

export async function waitUntilIdle(page: Page): Promise<void> {
  await page.evaluate(() => (globalThis as unknown as PageHooks).chartpilot.idle());
}

export async function nextFrame(page: Page): Promise<void> {
  await page.evaluate(() => (globalThis as unknown as InPage).inPage.nextFrame());
}

/** Moves to a share of the trace by the slider. */
export async function goToShare(page: Page, share: number): Promise<void> {
  const index = Math.floor(((await shownRecordCount(page)) - 1) * share);
  await page.locator('input[type=range]#place').fill(String(index));
  await nextFrame(page);
}

/** Expects that the page shows the states that follow from the trace. */
export async function expectStatesOfTrace(page: Page, tracePath: string): Promise<void> {
  await expect.poll(async () => readShownActors(page)).toEqual(actorsAt(tracePath, await shownSeq(page)));
}

const clocks = new WeakMap<Page, CDPSession>();

/** Starts to count the work of a page's main thread. */
export async function countWork(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  clocks.set(page, session);
}

/** CPU time in milliseconds since {@link countWork}, without other load of the machine. */
export async function mainThreadMs(page: Page): Promise<number> {
  const { metrics } = await clocks.get(page)!.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'TaskDuration')!.value * 1_000;
}

/** Current slowness of the machine for a page, in CPU time of its main thread. Starts {@link countWork}. */
export function slownessOf(page: Page): Promise<number> {
  return slowness(async () => {
    const startMs = await mainThreadMs(page);
    await page.evaluate(referenceWork);
    return (await mainThreadMs(page)) - startMs;
  });
}

/** Bytes of JavaScript memory after a garbage collection, including columns. */
export async function heapBytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  try {
    await session.send('HeapProfiler.collectGarbage');
    const heapUsage = (await session.send('Runtime.getHeapUsage')) as { usedSize: number; backingStorageSize?: number };
    return heapUsage.usedSize + (heapUsage.backingStorageSize ?? 0);
  } finally {
    await session.detach();
  }
}

/** Number of key repeats in {@link stepRate}. */
export const heldSteps = 90;

/** Frames per second while a key is held down, with one step in each frame. */
export function stepRate(page: Page, key: string): Promise<number> {
  return page.evaluate(([heldKey, times]) => (globalThis as unknown as InPage).inPage.holdKey(heldKey, times), [
    key,
    heldSteps,
  ] as const);
}

/** Dispatches the events of files that are dragged over the page and dropped. */
export async function drop(
  page: Page,
  files: readonly { readonly name: string; readonly body: string | Buffer }[],
): Promise<void> {
  const droppedFiles = files.map(({ name, body }) => ({ name, base64: Buffer.from(body).toString('base64') }));
  await page.evaluate((list) => (globalThis as unknown as InPage).inPage.drop(list), droppedFiles);
}

/** Expected {@link readShownActors} at a record, from the trace: living charts and their states. */
export function actorsAt(trace: string, seq: number | undefined): ShownActors {
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

/** Interface of the page for tests (`visualize/main.tsx`). */
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
    /** Milliseconds to open the source. */
    readonly opened: number | undefined;
  };
}

/** Functions of the tests in the page (`in-page.js`). */
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
