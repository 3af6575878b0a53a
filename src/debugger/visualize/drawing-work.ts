/** What the thread that draws is told and answers. */
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { MachinePictures } from './known-charts.ts';

/** What may be made of a machine; texts but for `pictures`. */
export interface Drawings {
  readonly pictures: MachinePictures;
  readonly svg: string;
  readonly mermaid: string;
  readonly table: string;
}

export interface DrawingOrder {
  readonly what: keyof Drawings;
  readonly chart: Statechart;
}

/** What was made, or why nothing was. */
export type DrawingAnswer<What extends keyof Drawings = keyof Drawings> =
  | { readonly drawn: Drawings[What] }
  | { readonly failed: string };
