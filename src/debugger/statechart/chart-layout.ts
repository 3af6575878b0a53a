/** Positions are in pixels from the upper left corner. */
import type { TextLine } from './chart-text.ts';
import type { StateHeader } from './state-header.ts';

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface ChartBox extends Point {
  readonly width: number;
  readonly height: number;
}

export interface ChartLayout {
  readonly width: number;
  readonly height: number;
  readonly states: readonly StateBox[];
  readonly arrows: readonly ChartArrow[];
  readonly markers: readonly InitialMarker[];
}

export interface StateBox extends ChartBox {
  readonly header: StateHeader;
}

/** An arrow consists of vertical and horizontal lines. */
export interface ChartArrow {
  readonly source: number;
  readonly target: number;
  readonly points: readonly Point[];
  readonly labelArea: ChartBox;
  /** One for each transition with this arrow. */
  readonly labels: readonly ArrowLabel[];
}

export interface ArrowLabel extends ChartBox {
  readonly transition: number;
  readonly lines: readonly TextLine[];
}

/** The dot with an arrow to the initial state. */
export interface InitialMarker extends ChartBox {
  readonly parent: number;
  readonly points: readonly Point[];
}
