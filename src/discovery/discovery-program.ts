/** What the command line passes to the control plane. */
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
  /** Version in one line, for `/version`. */
  readonly version: string;
  /** Token of the pages that need one. The caller that created it withdraws it. */
  readonly access: DebuggerAccess;
  /** Offered at every HTTP port. The caller that created it ends it. */
  readonly trace?: TraceEndpoint;
  /** Registries beside those that `--registries` names; they may change by themselves, come and go. */
  readonly registries?: RegistryOffers;
  /** Sources of configuration beside directories, by the scheme of their addresses. */
  readonly sources?: SourceAdapters;
  /** PEM: by whom bundle endpoints are known, instead of the roots that Node knows; for tests. */
  readonly bundleAuthorities?: string;
  /** The source of signals; the process itself unless a test says otherwise. */
  readonly signals?: Pick<NodeJS.Process, 'on' | 'off'>;
}
