/**
 * How a timeline shows the actors of a machine: plain data in `meta: { timeline }` at the machine's root. Tags define the phase of a state, see
 * {@link lifePhases}.
 */
export interface Timeline {
  /** Default: one lane each for the first few actors, and a count for all others. */
  readonly lane?: 'each' | 'none' | { readonly count: string };
  /** Lanes that always exist, in this order. `program` shows marks without a lane. */
  readonly lanes?: readonly { readonly name: string; readonly title?: string }[];
  /** Events between machines of one group match no mark rule for `*`. */
  readonly group?: string;
  /** Child effects by name: the lane shows a bar while the child runs. */
  readonly work?: readonly { readonly child: string; readonly lane: string; readonly phase: string }[];
  readonly marks?: readonly MarkRule[];
  /** A process of the actor that is not a state. */
  readonly process?: ProcessRule;
  /** Messages to and from other programs: arrows if their traces are shown together. */
  readonly links?: readonly LinkRule[];
}

/** One end of an arrow between programs, identified by an event. */
export interface LinkRule {
  readonly event: string;
  /** `is`: the event contains the identity of this program, which is `{identity}` in the keys of other rules. */
  readonly side: 'sends' | 'receives' | 'is';
  /** Text with fields of the event, as in {@link MarkRule.text}, that is equal at both ends of the arrow. */
  readonly key: string;
  /** Default: event type. */
  readonly text?: string;
}

/** A process has a lane from its first step, with a bar for each step. */
export interface ProcessRule {
  /** Title of the lane: text with fields of this event, which precedes the first step. Default: name of the actor. */
  readonly title?: { readonly event: string; readonly text: string };
  readonly steps: readonly StepRule[];
}

/** The first matching rule applies. */
export interface StepRule {
  readonly event: string;
  readonly when?: Readonly<Record<string, unknown>>;
  /** Steps in which the rule applies; default: always. */
  readonly during?: readonly string[];
  /** Step that begins; default: the process ends. */
  readonly step?: string;
  /** Text for what the step waits for, as in {@link MarkRule.text}. */
  readonly text?: string;
}

/** Condition of a mark, by one of `event`, `timer` and `items`. The first matching rule applies. */
export interface MarkRule {
  readonly kind: MarkKind;
  /**
   * `{reason}` is that field of the event, `{a.b}` a nested field, `{a|b}` the first field that exists, `{list:object}` a count (`2
   * objects`). `{type}`, `{from}` and `{to}` are type, sender and receiver.
   */
  readonly text: string;
  /** Name of a lane or actor, possibly with fields of the event. Default, also if there is no such lane: `program`. */
  readonly lane?: string;
  /** Type of an event that any actor receives. `*`: an event that an actor of this machine sends out of its group and that no other rule matches. */
  readonly event?: string;
  /** Name of a delay of this machine that has elapsed. */
  readonly timer?: string;
  /** JSON Pointer to a list in the context of this machine, of which an item changes to match `when`. */
  readonly items?: string;
  readonly when?: Readonly<Record<string, unknown>>;
  /** Lower bounds of fields, exclusive. */
  readonly above?: Readonly<Record<string, number>>;
  /** No mark if this field is unchanged since the last mark. */
  readonly unlessSame?: string;
}

/** In ascending order of importance. */
export const markKinds = [
  'request',
  'change',
  'push',
  'restart',
  'signal',
  'retry',
  'rejected',
  'failure',
  'departure',
] as const;

export type MarkKind = (typeof markKinds)[number];

/** Tags that give the phase of a state, whatever its name. */
export const lifePhases = ['starting', 'live', 'draining', 'retiring', 'ending', 'gone'] as const;
