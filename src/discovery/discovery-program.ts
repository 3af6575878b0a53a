/** Input of the control plane from the command line. */
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
  /** One line, for `/version`. */
  readonly version: string;
  /** Token of protected pages; its creator revokes it. */
  readonly access: DebuggerAccess;
  /** Served on every HTTP port; closed by its creator. */
  readonly trace?: TraceEndpoint;
  /** In addition to `--registries`. They may change at run time. */
  readonly registries?: RegistryOffers;
  /** By URL scheme, in addition to directories. */
  readonly sources?: SourceAdapters;
  /** PEM roots that verify bundle endpoints instead of Node's, for tests. */
  readonly bundleAuthorities?: string;
  /** Default: the process. */
  readonly signals?: Pick<NodeJS.Process, 'on' | 'off'>;
}
