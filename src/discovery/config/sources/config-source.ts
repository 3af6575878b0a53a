/**
 * A source of configuration: a directory (`config-directory.ts`), a cluster, or another control plane. Sources do not push: `watch` reports where one
 * changes, and `snapshot` has its objects after `read`.
 */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { ConfigSnapshot } from '../snapshots/config-snapshot.ts';

export type SourceReading =
  | {
      readonly outcome: 'read';
      /** Keys (`Kind/namespace/name`) of all objects that may have changed. */
      readonly touched: ReadonlySet<string>;
      /** Problems that are new since the last reading. */
      readonly problems: readonly ConfigProblem[];
      /** Files or objects whose problems are resolved, as shown to users. */
      readonly recovered: readonly string[];
    }
  /** The source does not exist. The objects read before still apply; at the start the program ends. */
  | { readonly outcome: 'missing'; readonly problems: readonly ConfigProblem[] };

export interface ConfigSource {
  /**
   * The valid objects of the last reading (warnings reject none) and the last valid version of each invalid one. For an object that restricts access
   * and was never valid it has a placeholder that denies access (see `readConfigFile`).
   */
  readonly snapshot: ConfigSnapshot;
  readonly problemCount: number;
  /** Files, or similar units, with content that could not be identified, each with a reason; absent without such files. */
  readonly unreadable?: ReadonlyMap<string, string>;
  /** Reports changed places from now on. The source is then read with all places reported so far. */
  watch(handlers: WatchHandlers): StopWatching;
  /**
   * Updates the snapshot. The first call returns when everything that the source has is available: the start waits for it and reports which source is
   * pending. If it rejects, everything is read again later. Not called again before it returns.
   *
   * @param places as reported by `watch`; if empty, everything is read
   */
  read(places: readonly string[]): Promise<SourceReading>;
}

/** Creates the source of an address, by scheme: `fs` for `fs:///etc/mesh`. */
export type SourceAdapters = Readonly<Record<string, (address: string) => ConfigSource>>;

/** `fs` of `fs:///etc/mesh`; `undefined` if the text is no address. */
export function schemeOf(address: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1];
}
