import { relative } from 'node:path';
import { packageRoot } from '../../runtime/package-root.ts';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { TraceHeader } from '../../runtime/trace/trace.ts';
import { bundledDiagrams } from '../diagram/bundled.ts';
import { diagramTexts } from '../diagram/load.ts';
import type { Session } from '../page-data.ts';
import { drawMachine } from './draw-machine.ts';
import { chartKey, type MachinePictures, readKnownCharts } from './known-charts.ts';

/** Makes what the page shows beside a trace's records. The picture of the same machine is made once. */
export class Sessions {
  readonly #diagrams: string | undefined;
  readonly #pictures: Map<string, MachinePictures | Promise<MachinePictures>>;

  /** @param diagrams folder or file that every trace is held against; those of its program when absent */
  constructor(diagrams?: string, known = readKnownCharts()) {
    this.#diagrams = diagrams;
    this.#pictures = new Map(Object.entries(known));
  }

  async of({ machines, program }: Pick<TraceHeader, 'machines' | 'program'>): Promise<Session> {
    const drawn = await Promise.all(
      machines.map(async (chart) => {
        // A trace may come from anywhere: one machine that cannot be drawn takes nothing from the others.
        const pictures = await Promise.resolve(this.#draw(chart)).catch(() => undefined);
        return pictures === undefined ? [] : [[chart.id, pictures] as const];
      }),
    );
    return {
      charts: Object.fromEntries(drawn.flat().map(([id, { whole }]) => [id, whole])),
      briefCharts: Object.fromEntries(drawn.flat().map(([id, { brief }]) => [id, brief])),
      diagrams: this.#diagramsOf(program),
    };
  }

  #draw(chart: Statechart): MachinePictures | Promise<MachinePictures> {
    const key = chartKey(chart);
    const known = this.#pictures.get(key);
    if (known !== undefined) return known;
    const drawn = drawMachine(chart);
    this.#pictures.set(key, drawn);
    return drawn;
  }

  #diagramsOf(program: string): Session['diagrams'] {
    if (this.#diagrams !== undefined) return diagramTexts(this.#diagrams);
    const folder = bundledDiagrams(program);
    return folder === undefined ? [] : diagramTexts(folder, relative(packageRoot(), folder));
  }
}
