/** What a sequence diagram says, as parsed; `docs/sequence-diagrams.md` explains how it is read as a contract. */
import type { NamePattern } from './name-pattern.ts';

export interface Diagram {
  /** As given to the parser; errors and departures name it. */
  readonly file: string;
  /** The text, line by line, for showing a place in it. */
  readonly source: readonly string[];
  readonly participants: readonly Participant[];
  readonly body: Fragment;
  /** Messages that end a live activation without fault. */
  readonly interruptions: readonly Interruption[];
}

export interface Participant {
  /** The word that arrows use. */
  readonly id: string;
  /** The actor's name in traces. */
  readonly name: NamePattern;
}

export type Fragment =
  | Arrow
  | { readonly kind: 'sequence'; readonly items: readonly Fragment[] }
  | { readonly kind: 'alt'; readonly branches: readonly Fragment[] }
  | { readonly kind: 'opt'; readonly body: Fragment }
  /** Zero or more times. */
  | { readonly kind: 'loop'; readonly body: Fragment }
  /** All branches, interleaved in any way. */
  | { readonly kind: 'par'; readonly branches: readonly Fragment[] };

export interface Arrow {
  readonly kind: 'arrow';
  readonly from: NamePattern;
  readonly to: NamePattern;
  /** An event's type, `spawn`, `done`, or `timer` and the delay's name. */
  readonly type: string;
  /** From 1. */
  readonly line: number;
}

/** One `%% interrupted by:` line. The pattern `*` stands for any actor; the type `*` for any message. */
export interface Interruption {
  readonly from: NamePattern;
  readonly to: NamePattern;
  readonly type: string;
  readonly line: number;
}
