import type { Logger } from '../runtime/output/log.ts';
import type { DebuggerAccess } from '../runtime/trace/debugger-access.ts';
import type { Recorder } from '../runtime/trace/recorder.ts';
import type { TraceEndpoint } from '../runtime/trace/trace-endpoint.ts';
import type { SourceAdapters } from './config/sources/config-source.ts';
import type { DiscoveryOptions } from './options/discovery-options.ts';
import type { RegistryOffers } from './registry/registry.ts';

export interface DiscoveryProgram {
  readonly options: DiscoveryOptions;
  readonly log: Logger;
  readonly recorder: Recorder;
  /** Version for `/version`, in one line. */
  readonly version: string;
  /** The creator of this object revokes the token. */
  readonly access: DebuggerAccess;
  /** The creator of this object closes the endpoint. */
  readonly trace?: TraceEndpoint;
  /** Used in addition to `--registries`. The registries can change at run time. */
  readonly registries?: RegistryOffers;
  /** Used in addition to directories, by URL scheme. */
  readonly sources?: SourceAdapters;
  /** PEM roots that replace Node's roots for bundle endpoints in tests. */
  readonly bundleAuthorities?: string;
  readonly signals?: Pick<NodeJS.Process, 'on' | 'off'>;
}
