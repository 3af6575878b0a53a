import { relative } from 'node:path';
import { packageRoot } from '../../runtime/package-root.ts';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { TraceHeader } from '../../runtime/trace/trace.ts';
import { bundledDiagrams } from '../diagram/bundled.ts';
import { diagramTexts } from '../diagram/load.ts';
import type { Session } from '../page-data.ts';
import { chartsOf } from '../statechart/charts.ts';
import { chartKey, readKnownCharts } from './known-charts.ts';

/** Makes what the page shows beside a trace's records. The picture of the same machine is made once. */
export class Sessions {
  readonly #diagrams: string | undefined;
  readonly #charts: Map<string, string | Promise<string>>;

  /** @param diagrams folder or file that every trace is held against; those of its program when absent */
  constructor(diagrams?: string, known = readKnownCharts()) {
    this.#diagrams = diagrams;
    this.#charts = new Map(Object.entries(known));
  }

  async of({ machines, program }: Pick<TraceHeader, 'machines' | 'program'>): Promise<Session> {
    const charts = await Promise.all(
      machines.map(async (chart) => {
        // A trace may come from anywhere: one machine that cannot be drawn takes nothing from the others.
        const text = await Promise.resolve(this.#chart(chart)).catch(() => undefined);
        return text === undefined ? [] : [[chart.id, text] as const];
      }),
    );
    return { charts: Object.fromEntries(charts.flat()), diagrams: this.#diagramsOf(program) };
  }

  #chart(chart: Statechart): string | Promise<string> {
    const key = chartKey(chart);
    const known = this.#charts.get(key);
    if (known !== undefined) return known;
    const drawn = drawChart(chart);
    this.#charts.set(key, drawn);
    return drawn;
  }

  #diagramsOf(program: string): Session['diagrams'] {
    if (this.#diagrams !== undefined) return diagramTexts(this.#diagrams);
    const folder = bundledDiagrams(program);
    return folder === undefined ? [] : diagramTexts(folder, relative(packageRoot(), folder));
  }
}

/** Rejects, and never throws: a definition without states, or with names that lead nowhere, is no picture. */
async function drawChart(chart: Statechart): Promise<string> {
  return (await chartsOf([chart]))[chart.id]!;
}
