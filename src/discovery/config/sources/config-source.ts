/**
 * A source of configuration: a directory (`config-directory.ts`), a cluster, or another control plane. After `read`, `snapshot` contains the objects.
 */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { ConfigSnapshot } from '../snapshots/config-snapshot.ts';

export type SourceReading =
  | {
      readonly outcome: 'read';
      /** Keys (`KIND/NAMESPACE/NAME`) of all objects that may have changed. */
      readonly touchedKeys: ReadonlySet<string>;
      readonly problems: readonly ConfigProblem[];
      /** Files or objects whose problems are resolved, as text for users. */
      readonly recovered: readonly string[];
    }
  /** The source does not exist. Objects that were read before still apply. At startup, the program exits. */
  | { readonly outcome: 'missing'; readonly problems: readonly ConfigProblem[] };

export interface ConfigSource {
  /**
   * The valid objects of the last read, and the last valid version of each invalid one. For an object that restricts access and never was valid, a
   * placeholder that denies access (see `readConfigFile`).
   */
  readonly snapshot: ConfigSnapshot;
  readonly problemCount: number;
  /** Files or similar units whose content is unknown, with the reason. */
  readonly unreadable?: ReadonlyMap<string, string>;
  /** Reports places that change from now on. The caller then reads the source with these places. */
  watch(handlers: WatchHandlers): StopWatching;
  /**
   * Updates the snapshot. The first call completes when all content of the source is available, because startup waits for it and reports pending
   * sources. Calls must not overlap.
   *
   * @param places as reported by `watch`, or empty for everything
   */
  read(places: readonly string[]): Promise<SourceReading>;
}

/** Functions that create sources, by URL scheme such as `fs` for `fs:///etc/mesh`. */
export type SourceAdapters = Readonly<Record<string, (address: string) => ConfigSource>>;

/** Scheme of an address, such as `fs` for `fs:///etc/mesh`. `undefined` if the text is not an address. */
export function schemeOf(address: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1];
}
