/**
 * Chooses the blocking queries that watch a catalog. A blocking query for the list of services does not return when an
 * instance becomes unhealthy, and one for a service occupies a connection of HTTP/1.1.
 */

/**
 * `nodes`: a query per node, one for nodes, one for checks that do not pass. `services`: a query per service, one for the list of services.
 * `coarse`: three lists; each change of services reads all of them again.
 */
export type WatchStrategy = 'nodes' | 'services' | 'coarse';

export type ConsulTransport = 'HTTP/1.1' | 'HTTP/2';

export interface CatalogSurvey {
  nodes: number;
  services: number;
  transport: ConsulTransport;
}

export interface ChosenStrategy {
  strategy: WatchStrategy;
  transport: ConsulTransport;
  connections: number;
}

/** HTTP/1.1 needs one connection per query. An agent allows 200 connections per address, and other programs of the host need some. */
export const maxConsulConnections = 150;
/** Connections needed by the coarse strategy, also after a 429. */
export const minConsulConnections = 8;
/** Streams of one HTTP/2 connection of an agent. */
const streamsPerConnection = 250;
const maxHttp2Connections = 8;
/** Queries for the list of nodes and for checks. */
const nodeLists = 2;
const serviceLists = 1;
const coarseQueryCount = 3;

/** @param maxConnections {@link maxConsulConnections}, or less after a 429 */
export function chooseStrategy(survey: CatalogSurvey, maxConnections: number): ChosenStrategy {
  const { nodes, services, transport } = survey;
  const nodeStrategy = { strategy: 'nodes', queries: nodes + nodeLists } as const;
  const serviceStrategy = { strategy: 'services', queries: services + serviceLists } as const;
  const coarseStrategy = { strategy: 'coarse', queries: coarseQueryCount } as const;
  // `services` reads only changed services again; `nodes` uses the fewest HTTP/1.1 connections.
  const preferredStrategies =
    transport === 'HTTP/2'
      ? [serviceStrategy, nodeStrategy]
      : nodeStrategy.queries <= serviceStrategy.queries
        ? [nodeStrategy, serviceStrategy]
        : [serviceStrategy, nodeStrategy];
  const limit = limitOf(transport, maxConnections);
  const { strategy, queries } =
    preferredStrategies.find((one) => connectionsOf(transport, one.queries) <= limit) ?? coarseStrategy;
  return { strategy, transport, connections: connectionsOf(transport, queries) };
}

/** Whether another strategy is needed because nodes or services were added. */
export function isOutgrown(
  { strategy, transport }: ChosenStrategy,
  { nodes, services }: Pick<CatalogSurvey, 'nodes' | 'services'>,
  maxConnections: number,
): boolean {
  const queries = strategy === 'nodes' ? nodes + nodeLists : strategy === 'services' ? services + serviceLists : 0;
  return connectionsOf(transport, queries) > limitOf(transport, maxConnections);
}

export function connectionsAfterThrottling(usedConnections: number, maxConnections: number): number {
  return Math.max(minConsulConnections, Math.floor(Math.min(usedConnections || maxConnections, maxConnections) / 2));
}

function connectionsOf(transport: ConsulTransport, queries: number): number {
  return transport === 'HTTP/2' ? Math.ceil(queries / streamsPerConnection) : queries;
}

function limitOf(transport: ConsulTransport, maxConnections: number): number {
  return transport === 'HTTP/2' ? maxHttp2Connections : maxConnections;
}
