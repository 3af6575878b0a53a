/** A parsed sequence diagram; `docs/sequence-diagrams.md` specifies its meaning as a contract. */
import type { NamePattern } from './name-pattern.ts';

export interface Diagram {
  /** Errors and deviations contain this name. */
  readonly file: string;
  /** The lines of the file, for excerpts. */
  readonly source: readonly string[];
  readonly participants: readonly Participant[];
  readonly body: Fragment;
  /** Messages that end a live activation without a deviation. */
  readonly interruptions: readonly Interruption[];
}

export interface Participant {
  readonly id: string;
  readonly name: NamePattern;
}

export type Fragment =
  | DiagramArrow
  | { readonly kind: 'sequence'; readonly items: readonly Fragment[] }
  | { readonly kind: 'alt'; readonly branches: readonly Fragment[] }
  | { readonly kind: 'opt'; readonly body: Fragment }
  /** Zero or more times. */
  | { readonly kind: 'loop'; readonly body: Fragment }
  /** All branches, in any interleaving. */
  | { readonly kind: 'par'; readonly branches: readonly Fragment[] };

export interface DiagramArrow {
  readonly kind: 'arrow';
  readonly from: NamePattern;
  readonly to: NamePattern;
  /** The type of an event, `spawn`, `done`, or `timer` and the name of the delay. */
  readonly type: string;
  /** Starts at 1. */
  readonly line: number;
}

/** A `%% interrupted by:` line. The pattern `*` stands for any actor; the type `*` for any message. */
export interface Interruption {
  readonly from: NamePattern;
  readonly to: NamePattern;
  readonly type: string;
  readonly line: number;
}
