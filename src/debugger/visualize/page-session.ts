import { relative } from 'node:path';
import { packageRoot } from '../../runtime/package-root.ts';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { TraceHeader } from '../../runtime/trace/trace.ts';
import { bundledDiagrams } from '../diagram/bundled.ts';
import { diagramTexts } from '../diagram/load.ts';
import type { Session } from '../page-data.ts';
import { type DrawingLimits, DrawingThread } from './drawing-thread.ts';
import type { DrawingResult } from './drawing-work.ts';
import { chartKey, type MachinePictures, readKnownCharts } from './known-charts.ts';

type DrawnPictures = DrawingResult<'pictures'>;

/** Equal machines are drawn once. */
export class Sessions {
  readonly #diagrams: string | undefined;
  readonly #pictures: Map<string, DrawnPictures | Promise<DrawnPictures>>;

  readonly #limits: Partial<DrawingLimits>;

  constructor(diagrams?: string, prebuiltCharts = readKnownCharts(), limits: Partial<DrawingLimits> = {}) {
    this.#diagrams = diagrams;
    this.#limits = limits;
    this.#pictures = new Map(Object.entries(prebuiltCharts).map(([key, pictures]) => [key, { drawn: pictures }]));
  }

  async sessionOf({ machines, program }: Pick<TraceHeader, 'machines' | 'program'>): Promise<Session> {
    const drawnPictures: (readonly [string, MachinePictures])[] = [];
    const notDrawn: (readonly [string, string])[] = [];
    // A trace is untrusted, and a machine that cannot be drawn must not affect the others.
    const thread = new DrawingThread(this.#limits);
    try {
      for (const chart of machines) {
        const result = await this.#draw(chart, thread);
        if ('drawn' in result) drawnPictures.push([chart.id, result.drawn]);
        else notDrawn.push([chart.id, result.failed]);
      }
    } finally {
      thread.stop();
    }
    return {
      charts: Object.fromEntries(drawnPictures.map(([id, { whole }]) => [id, whole])),
      briefCharts: Object.fromEntries(drawnPictures.map(([id, { brief }]) => [id, brief])),
      ...(notDrawn.length > 0 && { notDrawn: Object.fromEntries(notDrawn) }),
      diagrams: this.#diagramsOf(program),
    };
  }

  #draw(chart: Statechart, thread: DrawingThread): DrawnPictures | Promise<DrawnPictures> {
    const key = chartKey(chart);
    const cachedPictures = this.#pictures.get(key);
    if (cachedPictures !== undefined) return cachedPictures;
    const drawing = thread.draw('pictures', chart);
    this.#pictures.set(key, drawing);
    return drawing.then((result) => {
      // A failure, perhaps because of a time limit or load, is retried on the next request.
      if ('failed' in result) this.#pictures.delete(key);
      return result;
    });
  }

  #diagramsOf(program: string): Session['diagrams'] {
    if (this.#diagrams !== undefined) return diagramTexts(this.#diagrams);
    const folder = bundledDiagrams(program);
    return folder === undefined ? [] : diagramTexts(folder, relative(packageRoot(), folder));
  }
}
