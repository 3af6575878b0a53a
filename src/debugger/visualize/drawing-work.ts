import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { MachinePictures } from './known-charts.ts';

/** All results but `pictures` are texts. */
export interface Drawings {
  readonly pictures: MachinePictures;
  readonly svg: string;
  readonly mermaid: string;
  readonly table: string;
}

export interface DrawingOrder {
  readonly output: keyof Drawings;
  readonly chart: Statechart;
}

export type DrawingResult<What extends keyof Drawings = keyof Drawings> =
  | { readonly drawn: Drawings[What] }
  | { readonly failed: string };
