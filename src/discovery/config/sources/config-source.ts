/**
 * A source of configuration: a directory (`config-directory.ts`), a cluster, or another control plane. Sources report
 * through `watch` where they changed. After `read`, `snapshot` contains the objects.
 */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { ConfigSnapshot } from '../snapshots/config-snapshot.ts';

export type SourceReading =
  | {
      readonly outcome: 'read';
      /** Keys (`KIND/NAMESPACE/NAME`) of all objects that may have changed. */
      readonly touched: ReadonlySet<string>;
      readonly problems: readonly ConfigProblem[];
      /** For users: files or objects whose problems are resolved. */
      readonly recovered: readonly string[];
    }
  /** The source does not exist. Previously read objects still apply. At the start, the program exits. */
  | { readonly outcome: 'missing'; readonly problems: readonly ConfigProblem[] };

export interface ConfigSource {
  /**
   * The valid objects of the last reading, and the last valid version of each invalid one. For an object that
   * restricts access and never was valid, a placeholder that denies access (see `readConfigFile`).
   */
  readonly snapshot: ConfigSnapshot;
  readonly problemCount: number;
  /** Files or similar units with unidentified content, with the reason. */
  readonly unreadable?: ReadonlyMap<string, string>;
  /** Reports changed places from now on. The source is then read with the reported places. */
  watch(handlers: WatchHandlers): StopWatching;
  /**
   * Updates the snapshot. The first call completes when the whole content of the source is available, because the
   * start waits for it and reports pending sources. If it rejects, everything is read again later. Calls must not
   * overlap.
   *
   * @param places as reported by `watch`, or empty for everything
   */
  read(places: readonly string[]): Promise<SourceReading>;
}

/** Creates sources by URL scheme, such as `fs` for `fs:///etc/mesh`. */
export type SourceAdapters = Readonly<Record<string, (address: string) => ConfigSource>>;

/** `fs` for `fs:///etc/mesh`. `undefined` if the text is not an address. */
export function schemeOf(address: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1];
}
