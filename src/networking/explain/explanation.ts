import type { FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Route, VirtualHost } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { InspectedConnection } from './inspected.ts';
import type { FoundListener } from './listener-match.ts';
import type { RequestOutcome, Target } from './outcome.ts';

export interface Explanation {
  readonly listener?: FoundListener;
  readonly inspected?: InspectedConnection;
  readonly chain?: FilterChain;
  /** Names of network filters, followed by HTTP filters, in order. */
  readonly filters: readonly string[];
  readonly routeConfiguration?: string;
  readonly virtualHost?: VirtualHost;
  readonly route?: Route;
  readonly outcome: RequestOutcome;
  readonly targets: readonly Target[];
}
