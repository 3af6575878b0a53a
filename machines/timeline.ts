/**
 * How a machine wants to be seen over time: plain data at its root, `meta: { timeline }`. It goes into the header of each trace,
 * so that whoever draws a trace knows no program by name. What a state is for is told by its tags, see {@link lifePhases}.
 */
export interface Timeline {
  /**
   * Which lanes its actors have: one each; none; or their number is the line of one lane. Absent: one each, for the first few of
   * them, and the number of the others.
   */
  readonly lane?: 'each' | 'none' | { readonly count: string };
  /** Lanes that are there from the beginning, in this order; `program` is where marks go that name no lane. */
  readonly lanes?: readonly { readonly name: string; readonly title?: string }[];
  /** What machines of one group say among themselves is no mark of a rule for `*`. */
  readonly group?: string;
  /** Children that are effects, by their names: as long as one lives, its lane has a bar. */
  readonly work?: readonly { readonly child: string; readonly lane: string; readonly phase: string }[];
  readonly marks?: readonly MarkRule[];
  /** A process of its actors that is no state of theirs. */
  readonly process?: ProcessRule;
  /** What goes to other programs, and comes from them: arrows where their traces are looked at together. */
  readonly links?: readonly LinkRule[];
}

/** One end of an arrow between programs: an event tells of it. */
export interface LinkRule {
  readonly event: string;
  /** `is`: the event tells who this program is to others; `{identity}` in other rules' keys. */
  readonly side: 'sends' | 'receives' | 'is';
  /** With fields of the event, as in {@link MarkRule.text}: what both ends have in common. An end that lacks one is none. */
  readonly key: string;
  /** What goes along it; the event's type unless given. */
  readonly text?: string;
}

/**
 * A process that takes an actor several events. The actor has a lane for it from the first step on, with a bar for each step. Events
 * count that are delivered to the actor.
 */
export interface ProcessRule {
  /** The title of the lane: words with fields of this event, which comes before the first step. Absent: the actor's name. */
  readonly title?: { readonly event: string; readonly text: string };
  readonly steps: readonly StepRule[];
}

/** An event that ends the current step and begins the next one. Of the rules for one event the first that fits is taken. */
export interface StepRule {
  readonly event: string;
  /** Fields that must have these values. */
  readonly when?: Readonly<Record<string, unknown>>;
  /** The current step must be one of these; absent: any, or none. */
  readonly during?: readonly string[];
  /** Name of the step that begins; absent: the process ends. */
  readonly step?: string;
  /** What the step waits for, with fields of the event as in {@link MarkRule.text}. */
  readonly text?: string;
}

/** When there is a mark. Of the rules for one event the first that fits is taken. It names one of `event`, `timer`, `items`. */
export interface MarkRule {
  readonly kind: MarkKind;
  /**
   * In words. `{reason}` is that field of the event, `{a.b}` a field of a field, `{a|b}` the first that is there, `{list:object}`
   * how many there are (`2 objects`); `{type}`, `{from}` and `{to}` are the event's own.
   */
  readonly text: string;
  /** A lane's name, or an actor's, which may come from the event as well; `program` where it is absent or there is no such lane. */
  readonly lane?: string;
  /** An event of this type is delivered to anybody. `*`: any that an actor of this machine sends out of its group, and no other rule is for. */
  readonly event?: string;
  /** A delay of this name of an actor of this machine is over. */
  readonly timer?: string;
  /** Path of a list in the context of an actor of this machine (a JSON Pointer): an item of it comes to be as `when` says. */
  readonly items?: string;
  /** Fields that must have these values. */
  readonly when?: Readonly<Record<string, unknown>>;
  /** Fields that must be numbers greater than these. */
  readonly above?: Readonly<Record<string, number>>;
  /** No mark where this field is what it was at the mark before. */
  readonly unlessSame?: string;
}

/** From what nobody minds to what everybody has to know. */
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

/** Tags of states that are phases of a life, whatever the states are called; the first that a state has is shown. */
export const lifePhases = ['starting', 'live', 'draining', 'retiring', 'ending', 'gone'] as const;
