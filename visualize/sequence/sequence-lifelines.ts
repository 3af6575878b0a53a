import { outsideActor } from '../../src/debugger/check/message.ts';
import type { Diagram } from '../../src/debugger/diagram/diagram.ts';

export interface Lifetime {
  readonly actor: string;
  /** -1 if the actor lived before the first record. */
  readonly begin: number;
  /** Infinity while the actor lives. */
  end: number;
}

/** Numbered actors reuse a lifeline one after the other. */
export interface Lifeline {
  readonly id: number;
  /** The name of its actors with `N` for numbers. */
  readonly family: string;
  readonly number: number;
  /** The lifeline of the actor that an effect or child machine works for. */
  readonly owner?: Lifeline;
  /** Machines have states and are never merged into the lifeline of their owner. */
  readonly isMachine: boolean;
  /** Sorted, without overlap. */
  readonly lives: Lifetime[];
}

/** A family with more lifelines shares one column. */
export const maxLifelines = 6;
/** The lifelines of further families share the last column. */
export const maxColumns = 100;
const maxOwners = 32;

export class Lifelines {
  readonly #lifelines: Lifeline[] = [];
  readonly #families = new Map<string, Lifeline[]>();
  readonly #lifelineOf = new Map<string, Lifeline>();
  /** Free lifelines of families with one column, by the owner's lifeline. */
  readonly #endedLifelines = new Map<string, Map<Lifeline | undefined, Lifeline[]>>();
  readonly #isMachine: (actor: string) => boolean;

  constructor(isMachine: (actor: string) => boolean = () => false) {
    this.#isMachine = isMachine;
  }

  get allLifelines(): readonly Lifeline[] {
    return this.#lifelines;
  }

  /** An actor without a spawn in the trace lives from this record on. */
  lifelineOf(actor: string, index: number): Lifeline {
    return this.#lifelineOf.get(actor) ?? this.addLifeline(actor, index);
  }

  addLifeline(actor: string, index: number): Lifeline {
    const previousLife = this.#lifelineOf.get(actor)?.lives.at(-1);
    if (previousLife?.actor === actor && previousLife.end === Number.POSITIVE_INFINITY) this.end(actor, index);
    const lifeline = this.#freeLifeline(actor, index);
    lifeline.lives.push({ actor, begin: index, end: Number.POSITIVE_INFINITY });
    this.#lifelineOf.set(actor, lifeline);
    return lifeline;
  }

  end(actor: string, index: number): void {
    const lifeline = this.#lifelineOf.get(actor);
    const life = lifeline?.lives.findLast((candidate) => candidate.actor === actor);
    if (lifeline === undefined || life === undefined) return;
    life.end = index;
    if (this.#families.get(lifeline.family)!.length > maxLifelines) this.#findEnded(lifeline).push(lifeline);
  }

  #freeLifeline(actor: string, index: number): Lifeline {
    const ownerName = ownerOf(actor);
    const owner = ownerName === undefined ? undefined : this.lifelineOf(ownerName, index);
    const family = familyOf(actor);
    const isMachine = this.#isMachine(actor);
    const lifelines = this.#families.get(family) ?? [];
    this.#families.set(family, lifelines);
    // A family with one column may reuse any free lifeline; searching all for each of a million actors would take hours.
    const freeLifeline =
      lifelines.length > maxLifelines
        ? this.#findEnded({ family, owner }).pop()
        : lifelines.find(
            (candidate) =>
              candidate.owner === owner && candidate.isMachine === isMachine && isLifelineFree(candidate, index),
          );
    if (freeLifeline !== undefined && isLifelineFree(freeLifeline, index)) return freeLifeline;
    const lifeline: Lifeline = {
      id: this.#lifelines.length,
      family,
      number: lifelines.length,
      isMachine,
      lives: [],
      ...(owner !== undefined && { owner }),
    };
    lifelines.push(lifeline);
    this.#lifelines.push(lifeline);
    return lifeline;
  }

  #findEnded({ family, owner }: { readonly family: string; readonly owner?: Lifeline | undefined }): Lifeline[] {
    const endedByOwner = this.#endedLifelines.get(family) ?? new Map<Lifeline | undefined, Lifeline[]>();
    this.#endedLifelines.set(family, endedByOwner);
    const endedLifelines = endedByOwner.get(owner) ?? [];
    endedByOwner.set(owner, endedLifelines);
    return endedLifelines;
  }
}

/** The name before the last `/`, or before the first one if there are too many. */
function ownerOf(actor: string): string | undefined {
  const names = actor.split('/', maxOwners + 2).length;
  if (names === 1) return undefined;
  return actor.slice(0, names > maxOwners + 1 ? actor.indexOf('/') : actor.lastIndexOf('/'));
}

function isLifelineFree({ lives }: Lifeline, index: number): boolean {
  return (lives.at(-1)?.end ?? 0) <= index;
}

export interface Column {
  /** Contains several lifelines if a family shares one column. */
  readonly lifelines: readonly Lifeline[];
  readonly family: string;
  /** Such a column shows all families without a separate column. */
  readonly isRest?: boolean;
}

export interface Columns {
  readonly list: readonly Column[];
  /** `undefined` if the lifeline is hidden. */
  columnIndexOf(lifeline: Lifeline): number | undefined;
}

export interface ColumnOptions {
  readonly foldEffects: boolean;
  /** This actor always has a column, however many families there are. */
  readonly actor?: string | undefined;
}

/** Returns at most {@link maxColumns}: participants of the diagrams first, in their order, then the others in the order of appearance. */
export function columnsOf(
  lifelines: Iterable<Lifeline>,
  order: ReadonlyMap<string, number>,
  { foldEffects, actor }: ColumnOptions,
): Columns {
  const shownLifelines = new Set<Lifeline>();
  for (const lifeline of lifelines) shownLifelines.add(foldEffects ? rootOf(lifeline) : lifeline);
  const families = Map.groupBy(shownLifelines, ({ family }) => family);
  const foldedFamilies = foldedFamiliesOf(
    families,
    order,
    actor === undefined ? undefined : shownFamily(actor, families),
  );
  const sortedLifelines = [...shownLifelines]
    .filter(({ family }) => !foldedFamilies.has(family))
    .sort((a, b) => compareKeys(keyOf(a, order), keyOf(b, order)));
  const list: Column[] = [];
  const columnIndex = new Map<Lifeline, number>();
  for (const lifeline of sortedLifelines) {
    if (columnIndex.has(lifeline)) continue;
    const family = families.get(lifeline.family)!;
    const columnLifelines = family.length > maxLifelines ? family : [lifeline];
    for (const member of columnLifelines) columnIndex.set(member, list.length);
    list.push({ lifelines: columnLifelines, family: lifeline.family });
  }
  if (foldedFamilies.size > 0) {
    const grouped = [...foldedFamilies].flatMap((family) => families.get(family)!);
    for (const columnLifeline of grouped) columnIndex.set(columnLifeline, list.length);
    list.push({ lifelines: grouped, family: 'others', isRest: true });
  }
  return { list, columnIndexOf: (lifeline) => columnIndex.get(foldEffects ? rootOf(lifeline) : lifeline) };
}

function shownFamily(actor: string, families: ReadonlyMap<string, unknown>): string | undefined {
  for (let name: string | undefined = actor; name !== undefined; name = ownerOf(name)) {
    if (families.has(familyOf(name))) return familyOf(name);
  }
  return undefined;
}

/** Participants of the diagrams and the chosen actor have priority, then the families that appeared first. */
function foldedFamiliesOf(
  families: ReadonlyMap<string, readonly Lifeline[]>,
  order: ReadonlyMap<string, number>,
  chosenActor: string | undefined,
): ReadonlySet<string> {
  const columns = (family: string): number => {
    const lifelines = families.get(family)!.length;
    return lifelines > maxLifelines ? 1 : lifelines;
  };
  const foldedFamilies = new Set<string>();
  let columnCount = 0;
  for (const family of families.keys()) columnCount += columns(family);
  if (columnCount <= maxColumns) return foldedFamilies;
  const isNamed = (family: string): boolean => family === outsideActor || family === chosenActor || order.has(family);
  const all = [...families.keys()];
  // One column is for the remaining families.
  let freeColumns = maxColumns - 1;
  for (const family of [...all.filter(isNamed), ...all.filter((candidate) => !isNamed(candidate))]) {
    freeColumns -= columns(family);
    if (freeColumns < 0) foldedFamilies.add(family);
  }
  return foldedFamilies;
}

export function columnsWith(columns: Columns, lifelines: Iterable<Lifeline>): Columns {
  const usedIndexes = new Set<number>();
  for (const lifeline of lifelines) {
    const columnIndex = columns.columnIndexOf(lifeline);
    if (columnIndex !== undefined) usedIndexes.add(columnIndex);
  }
  const keptColumns = [...usedIndexes].sort((a, b) => a - b);
  const newIndexes = new Map(keptColumns.map((oldIndex, newIndex) => [oldIndex, newIndex]));
  return {
    list: keptColumns.map((oldIndex) => columns.list[oldIndex]!),
    columnIndexOf: (lifeline) => newIndexes.get(columns.columnIndexOf(lifeline) ?? -1),
  };
}

/** The name of the living actor, else of the previous one. */
export function titleOf({ lifelines, family, isRest }: Column, index: number): string {
  // Counting living actors would read each lifeline in each step.
  if (isRest === true) return `${lifelines.length.toLocaleString('en')} ${family}`;
  if (lifelines.length > 1) {
    const liveCount = lifelines.filter((lifeline) => lifeAt(lifeline, index) !== undefined).length;
    return `${family} (${liveCount})`;
  }
  const lives = lifelines[0]!.lives;
  const life = lifeAt(lifelines[0]!, index) ?? lives[Math.max(0, firstIndexEndingAfter(lives, index) - 1)];
  return life?.actor ?? family;
}

/** The lifetime that continues after the record at this place. */
export function lifeAt({ lives }: Lifeline, index: number): Lifetime | undefined {
  const life = lives[firstIndexEndingAfter(lives, index)];
  return life !== undefined && life.begin <= index ? life : undefined;
}

export function livesWithin({ lives }: Lifeline, first: number, last: number): Lifetime[] {
  const foundLives: Lifetime[] = [];
  for (let i = firstIndexEndingAfter(lives, first - 1); i < lives.length && lives[i]!.begin <= last; i++)
    foundLives.push(lives[i]!);
  return foundLives;
}

function firstIndexEndingAfter(lives: readonly Lifetime[], index: number): number {
  let lowIndex = 0;
  let highIndex = lives.length;
  while (lowIndex < highIndex) {
    const middle = (lowIndex + highIndex) >> 1;
    if (lives[middle]!.end > index) highIndex = middle;
    else lowIndex = middle + 1;
  }
  return lowIndex;
}

/** Returns `epoch-N/process` for `epoch-0b/process`. */
export function familyOf(name: string): string {
  return name.replaceAll(/-(?:N(?:\+\d+)?|\d+[a-z]?)(?=\/|$)/g, '-N');
}

/** Merges the lists of participants, the longest first. A participant of another list is placed after its predecessor in that list. */
export function participantOrder(diagrams: readonly Diagram[]): ReadonlyMap<string, number> {
  const order: string[] = [];
  const lists = diagrams.map(({ participants }) => [...new Set(participants.map(({ name }) => familyOf(name.text)))]);
  for (const list of lists.sort((a, b) => b.length - a.length)) {
    for (const [i, family] of list.entries()) {
      if (order.includes(family)) continue;
      const previousPosition = i === 0 ? undefined : order.indexOf(list[i - 1]!);
      const nextInOrder = list.slice(i + 1).find((other) => order.includes(other));
      if (previousPosition !== undefined) order.splice(previousPosition + 1, 0, family);
      else order.splice(nextInOrder === undefined ? order.length : order.indexOf(nextInOrder), 0, family);
    }
  }
  return new Map(order.map((family, rank) => [family, rank]));
}

function rootOf(lifeline: Lifeline): Lifeline {
  return lifeline.owner === undefined || lifeline.isMachine ? lifeline : rootOf(lifeline.owner);
}

const unlistedRank = 10_000;

function keyOf(lifeline: Lifeline, order: ReadonlyMap<string, number>): readonly number[] {
  const rank = order.get(lifeline.family) ?? (lifeline.family === outsideActor ? -1 : undefined);
  const { owner } = lifeline;
  // Effects of a numbered actor are next to it, wherever the diagrams place them.
  if (owner !== undefined && (rank === undefined || owner.family.includes('-N'))) {
    return [...keyOf(owner, order), rank ?? unlistedRank + lifeline.id];
  }
  return [rank ?? unlistedRank + (lifeline.number === 0 ? lifeline.id : unlistedRank), lifeline.number];
}

function compareKeys(firstKey: readonly number[], secondKey: readonly number[]): number {
  for (let i = 0; i < Math.max(firstKey.length, secondKey.length); i++) {
    const difference = (firstKey[i] ?? -1) - (secondKey[i] ?? -1);
    if (difference !== 0) return difference;
  }
  return 0;
}
