/** Interns the resources that clients report from an earlier stream (`initial_resource_versions`). */
import type { KnownResources } from '../../../../machines/discovery/xds/watch-record.ts';
import { decodePrefix, maxTextBytes, readFields } from './request-fields.ts';

interface KnownResource {
  readonly name: string;
  readonly version: string;
}

/** At the limit, all entries are dropped. */
const maxEntries = 50_000;
const maxEntryBytes = 512;
/** A request is compared with this many lists. */
const maxRecentLists = 16;
const maxRecentNames = 20_000;

export class KnownResourceLists {
  readonly #shareNames: (names: readonly string[]) => readonly string[];
  readonly #resourceByBytes = new Map<string, KnownResource>();
  /** Newest first. */
  #recentLists: readonly KnownResources[] = [];

  /** @param shareNames returns the same list for the same names in any order */
  constructor(shareNames: (names: readonly string[]) => readonly string[]) {
    this.#shareNames = shareNames;
  }

  /** @throws Error if the bytes are not an entry */
  entry(bytes: Uint8Array): KnownResource {
    if (bytes.length > maxEntryBytes) return parse(bytes);
    const key = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    const cachedEntry = this.#resourceByBytes.get(key);
    if (cachedEntry !== undefined) return cachedEntry;
    const entry = parse(bytes);
    if (this.#resourceByBytes.size >= maxEntries) this.#resourceByBytes.clear();
    this.#resourceByBytes.set(key, entry);
    return entry;
  }

  list(versions: ReadonlyMap<string, string>): KnownResources {
    const similarList = this.#recentLists.find(
      ({ names }) => names.length === versions.size && names.every((name) => versions.has(name)),
    );
    const names = similarList?.names ?? this.#shareNames([...versions.keys()]);
    const orderedVersions = names.map((name) => versions.get(name)!);
    const identicalList = this.#recentLists.find(
      (list) => list.names === names && isEqual(list.versions, orderedVersions),
    );
    const list = identicalList ?? { names, versions: orderedVersions };
    if (names.length <= maxRecentNames && list !== this.#recentLists[0]) {
      this.#recentLists = [list, ...this.#recentLists.filter((recent) => recent !== list)].slice(0, maxRecentLists);
    }
    return list;
  }
}

function parse(bytes: Uint8Array): KnownResource {
  let name = '';
  let version = '';
  readFields(bytes, (field, reader) => {
    if (field === 1) name = reader.string();
    else if (field === 2) version = decodePrefix(reader.bytes(), maxTextBytes.version);
    else return false;
    return true;
  });
  return { name, version };
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.every((text, i) => text === other[i]);
}
