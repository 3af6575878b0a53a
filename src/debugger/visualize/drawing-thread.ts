/**
 * Draws machines of traces in a thread, because a trace is untrusted: the layout of 60 states and 200 random transitions blocks the event loop for
 * half a minute.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { DrawingOrder, DrawingResult, Drawings } from './drawing-work.ts';

export interface DrawingLimits {
  /** A transition counts once per target. */
  readonly states: number;
  readonly transitions: number;
  /** Depth of nested states. */
  readonly levels: number;
  /** Time limits for one machine, and for all machines together. */
  readonly machineMs: number;
  readonly traceMs: number;
}

/** The largest machine of chartpilot has 27 states, 142 transitions, and is drawn in one or two seconds. */
export const drawingLimits: DrawingLimits = {
  states: 500,
  transitions: 2_000,
  levels: 30,
  machineMs: 20_000,
  traceMs: 90_000,
};

const maxMegabytes = 1024;

/** The helper is next to this file, or to the bundle that contains it. */
const helperModule = new URL(`./drawing-helper${extname(import.meta.filename)}`, import.meta.url);

/** Draws one machine at a time. The thread starts with the first one. */
export class DrawingThread {
  readonly #limits: DrawingLimits;
  #worker: Worker | undefined;
  #spentMs = 0;

  constructor(limits: Partial<DrawingLimits> = {}) {
    this.#limits = { ...drawingLimits, ...limits };
  }

  async draw<What extends keyof Drawings>(output: What, chart: Statechart): Promise<DrawingResult<What>> {
    const tooLargeReason = whyTooLarge(chart, this.#limits);
    if (tooLargeReason !== undefined) return { failed: tooLargeReason };
    return (await this.#requestDrawing({ output, chart })) as DrawingResult<What>;
  }

  stop(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  async #requestDrawing(order: DrawingOrder): Promise<DrawingResult> {
    const { machineMs, traceMs } = this.#limits;
    if (this.#spentMs >= traceMs) {
      return { failed: `time limit reached: ${traceMs / 1_000} s for all machines of a trace` };
    }
    const startedAt = performance.now();
    const { promise, resolve } = Promise.withResolvers<DrawingResult>();
    const onBroken = (error: unknown): void => {
      this.stop();
      resolve({ failed: `layout failed: ${messageOf(error)}` });
    };
    const limit = setTimeout(() => {
      this.stop();
      resolve({ failed: `time limit reached: ${machineMs / 1_000} s for a machine` });
    }, machineMs);
    const worker = this.#worker ?? startWorker();
    this.#worker = worker;
    worker.on('message', resolve).on('error', onBroken);
    worker.postMessage(order);
    const result = await promise;
    clearTimeout(limit);
    worker.off('message', resolve).off('error', onBroken);
    this.#spentMs += performance.now() - startedAt;
    return result;
  }
}

/** @throws ChartpilotError NOT_DRAWN, with the reason */
export async function drawOutput<What extends keyof Drawings>(
  output: What,
  chart: Statechart,
  limits?: Partial<DrawingLimits>,
): Promise<Drawings[What]> {
  const thread = new DrawingThread(limits);
  try {
    const result = await thread.draw(output, chart);
    if ('drawn' in result) return result.drawn;
    throw new ChartpilotError('NOT_DRAWN', `${chart.id}: ${result.failed}`, {
      hint: 'use --format json for its definition',
    });
  } finally {
    thread.stop();
  }
}

function startWorker(): Worker {
  const worker = new Worker(helperModule, { resourceLimits: { maxOldGenerationSizeMb: maxMegabytes } });
  // Without a listener between two requests, an error of the thread would end the program.
  return worker.on('error', () => {});
}

function whyTooLarge({ states, transitions }: Statechart, limits: DrawingLimits): string | undefined {
  const limitError = (unitName: string, count: number, maxCount: number): string | undefined =>
    count > maxCount ? `it has ${count} ${unitName}, the limit is ${maxCount}` : undefined;
  const arrows = transitions.reduce((sum, { targets }) => sum + Math.max(1, targets.length), 0);
  return (
    (states.length === 0 ? 'it has no states' : undefined) ??
    limitError('states', states.length, limits.states) ??
    limitError('transitions', arrows, limits.transitions) ??
    limitError('levels', levelsOf(states), limits.levels)
  );
}

/** Each state follows its parent: the reader rejects other traces. */
function levelsOf(states: Statechart['states']): number {
  const levels: number[] = [];
  for (const { parent } of states) levels.push(parent === undefined ? 1 : (levels[parent] ?? 0) + 1);
  return levels.reduce((max, level) => Math.max(max, level), 0);
}
