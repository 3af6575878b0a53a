/**
 * Where configuration comes from, as the control plane sees it: a directory (`config-directory.ts`), a cluster, another
 * control plane. A source is asked, it does not push: what happens in it is told by `watch`, what it has is in `snapshot`
 * once `read` has answered.
 */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { ConfigSnapshot } from '../snapshots/config-snapshot.ts';

export type SourceReading =
  | {
      readonly outcome: 'read';
      /** Keys (`Kind/namespace/name`) of all objects that may be others than before. */
      readonly touched: ReadonlySet<string>;
      /** Problems that were not there at the last reading. */
      readonly problems: readonly ConfigProblem[];
      /** Places, or objects, whose problems are gone, as people know them. */
      readonly recovered: readonly string[];
    }
  /** There is nothing where it should be: what was read before stays in force; at the start the program ends. */
  | { readonly outcome: 'missing'; readonly problems: readonly ConfigProblem[] };

export interface ConfigSource {
  /**
   * The valid objects of the last reading (warnings keep none out) and the last good one of each that is not valid any
   * more. Of one that restricts and never was valid: what stands in for it (`standIns` of `readConfigFile`), so that it lets
   * nobody in.
   */
  readonly snapshot: ConfigSnapshot;
  /** Mistakes and warnings in all. */
  readonly problemCount: number;
  /** Files, or the like, in which nobody can tell what is there, each with a reason; absent: none. */
  readonly unreadable?: ReadonlyMap<string, string>;
  /** Tells where something happens from now on: the source is then read, soon, with all such places at once. */
  watch(handlers: WatchHandlers): StopWatching;
  /**
   * Brings the snapshot up to date. The first time it answers when all that the source has is there: the start waits, and
   * says for which source. Rejected, it is tried again, everywhere. Not called again before it has answered.
   *
   * @param places as `watch` told them; none: everywhere
   */
  read(places: readonly string[]): Promise<SourceReading>;
}

/** Makes the source of an address, by the scheme of the address: `fs` for `fs:///etc/mesh`. */
export type SourceAdapters = Readonly<Record<string, (address: string) => ConfigSource>>;

/** `fs` of `fs:///etc/mesh`; undefined for what is no address. */
export function schemeOf(address: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1];
}
