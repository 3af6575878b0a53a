/** A source is a directory (`config-directory.ts`), a cluster, or another control plane. */
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
  /** Objects that were read before still apply. At startup, the program exits. */
  | { readonly outcome: 'missing'; readonly problems: readonly ConfigProblem[] };

export interface ConfigSource {
  /**
   * Contains the last valid version of each invalid object. If an object restricts access and never was valid, contains a placeholder that denies
   * access (see `readConfigFile`).
   */
  readonly snapshot: ConfigSnapshot;
  readonly problemCount: number;
  readonly unreadable?: ReadonlyMap<string, string>;
  /** The caller reads the source with the reported places. */
  watch(handlers: WatchHandlers): StopWatching;
  /**
   * The first call completes when all content of the source is available, because startup waits for it. Calls must not overlap.
   *
   * @param paths as reported by `watch`, or empty for everything
   */
  read(paths: readonly string[]): Promise<SourceReading>;
}

/** Keys are URL schemes such as `fs` for `fs:///etc/mesh`. */
export type SourceAdapters = Readonly<Record<string, (address: string) => ConfigSource>>;

/** `undefined` if the text is not an address. */
export function schemeOf(address: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1];
}
