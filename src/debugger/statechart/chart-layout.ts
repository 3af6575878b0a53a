/** The positions of all parts of a chart, in pixels from its upper left corner. */
import type { Line } from './chart-text.ts';
import type { StateHeader } from './state-header.ts';

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

export interface ChartLayout {
  readonly width: number;
  readonly height: number;
  readonly states: readonly StateBox[];
  readonly arrows: readonly Arrow[];
  readonly markers: readonly InitialMarker[];
}

export interface StateBox extends Box {
  readonly header: StateHeader;
}

/** From the border of one state to the border of another, in vertical and horizontal lines. */
export interface Arrow {
  readonly source: number;
  readonly target: number;
  readonly points: readonly Point[];
  readonly room: Box;
  /** One for each transition with this arrow, from top to bottom. */
  readonly labels: readonly ArrowLabel[];
}

export interface ArrowLabel extends Box {
  readonly transition: number;
  readonly lines: readonly Line[];
}

/** The dot with an arrow to the initial state. */
export interface InitialMarker extends Box {
  readonly parent: number;
  readonly points: readonly Point[];
}
