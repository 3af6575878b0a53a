/**
 * How a timeline shows the actors of a machine: plain data in `meta: { timeline }` at the root of the machine. The
 * header of each trace contains it, so that viewers need no knowledge of the program. Tags give the phase of a state,
 * see {@link lifePhases}.
 */
export interface Timeline {
  /**
   * Lanes of the actors: one each, none, or one lane that counts them. Default: one each for the first few, and a count
   * for the rest.
   */
  readonly lane?: 'each' | 'none' | { readonly count: string };
  /** Lanes that always exist, in this order. `program` has the marks without a lane. */
  readonly lanes?: readonly { readonly name: string; readonly title?: string }[];
  /** Events between machines of one group do not match a mark rule for `*`. */
  readonly group?: string;
  /** Child effects by name: the lane has a bar while the child runs. */
  readonly work?: readonly { readonly child: string; readonly lane: string; readonly phase: string }[];
  readonly marks?: readonly MarkRule[];
  /** A process of the actor that is not one of its states. */
  readonly process?: ProcessRule;
  /** Messages to and from other programs: arrows if their traces are shown together. */
  readonly links?: readonly LinkRule[];
}

/** One end of an arrow between programs, identified by an event. */
export interface LinkRule {
  readonly event: string;
  /** `is`: the event has the identity of this program; `{identity}` in the keys of other rules. */
  readonly side: 'sends' | 'receives' | 'is';
  /**
   * Text with fields of the event, as in {@link MarkRule.text}, that is equal at both ends. There is no arrow without
   * the other end.
   */
  readonly key: string;
  /** Label; default: the event's type. */
  readonly text?: string;
}

/**
 * A process of several events of an actor. The actor has a lane for it from the first step on, with a bar for each
 * step. Only events that are delivered to the actor count.
 */
export interface ProcessRule {
  /** Title of the lane: text with fields of this event, which precedes the first step. Default: the actor's name. */
  readonly title?: { readonly event: string; readonly text: string };
  readonly steps: readonly StepRule[];
}

/** An event that ends the current step and begins the next one. The first matching rule for an event applies. */
export interface StepRule {
  readonly event: string;
  /** Required values of fields. */
  readonly when?: Readonly<Record<string, unknown>>;
  /** The current step must be one of these; default: any, or none. */
  readonly during?: readonly string[];
  /** Name of the step that begins; default: the process ends. */
  readonly step?: string;
  /** What the step waits for, with fields of the event as in {@link MarkRule.text}. */
  readonly text?: string;
}

/** Condition of a mark. The first matching rule for an event applies. A rule has one of `event`, `timer`, `items`. */
export interface MarkRule {
  readonly kind: MarkKind;
  /**
   * `{reason}` is that field of the event, `{a.b}` a nested field, `{a|b}` the first field that exists, `{list:object}`
   * a count (`2 objects`); `{type}`, `{from}` and `{to}` are those of the event.
   */
  readonly text: string;
  /**
   * Name of a lane or of an actor, possibly with fields of the event; default, also if there is no such lane:
   * `program`.
   */
  readonly lane?: string;
  /**
   * An event of this type is delivered to any actor. `*`: any event that an actor of this machine sends out of its
   * group and that no other rule matches.
   */
  readonly event?: string;
  /** A delay with this name of an actor of this machine has elapsed. */
  readonly timer?: string;
  /** JSON Pointer to a list in the context of an actor of this machine: an item of it changes to match `when`. */
  readonly items?: string;
  /** Required values of fields. */
  readonly when?: Readonly<Record<string, unknown>>;
  /** Fields that must be greater than these. */
  readonly above?: Readonly<Record<string, number>>;
  /** No mark if this field has the value that it had at the previous mark. */
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

/** Tags that give the phase of a state, whatever its name; the first tag of a state that is listed here is shown. */
export const lifePhases = ['starting', 'live', 'draining', 'retiring', 'ending', 'gone'] as const;
