import { bindEnds, contractOf, type MessageSymbol } from '../../src/debugger/check/contract.ts';
import type { Message } from '../../src/debugger/check/message.ts';
import type { Diagram } from '../../src/debugger/diagram/diagram.ts';

export interface ContractPlace {
  readonly file: string;
  readonly line: number;
}

/** Limits the cache, because each connection has a separate name. */
const maxCachedPlaces = 20_000;

export class ContractPlaces {
  readonly #symbols = new Map<string, { file: string; symbol: MessageSymbol }[]>();
  readonly #cachedPlaces = new Map<string, readonly ContractPlace[]>();

  constructor(diagrams: readonly Diagram[]) {
    for (const diagram of diagrams) {
      for (const symbol of contractOf(diagram).alphabet) {
        const entries = this.#symbols.get(symbol.type) ?? [];
        entries.push({ file: diagram.file, symbol });
        this.#symbols.set(symbol.type, entries);
      }
    }
  }

  /** The first matching arrow of each diagram. */
  placesFor(message: Pick<Message, 'from' | 'to' | 'type'>): readonly ContractPlace[] {
    const key = `${message.type} ${message.from} ${message.to}`;
    const cachedPlaces = this.#cachedPlaces.get(key);
    if (cachedPlaces !== undefined) return cachedPlaces;
    const contractPlaces = (this.#symbols.get(message.type) ?? [])
      .filter(({ symbol }) => bindEnds(symbol, { ...message, seq: 0, t: 0 }) !== undefined)
      .map(({ file, symbol }) => ({ file, line: symbol.lines[0]! }));
    const firstPlaces = [
      ...new Map(contractPlaces.toReversed().map((contractPlace) => [contractPlace.file, contractPlace])).values(),
    ].toReversed();
    if (this.#cachedPlaces.size >= maxCachedPlaces) this.#cachedPlaces.clear();
    this.#cachedPlaces.set(key, firstPlaces);
    return firstPlaces;
  }
}
