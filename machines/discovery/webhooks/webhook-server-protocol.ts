/** Reviews of webhooks are not events. */
import type { CatalogueRow } from '../../catalogue-row.ts';

/** webhook-server → discovery. The API server can call the webhooks at this address. */
export type WebhooksListening = { type: 'webhooks.listening'; address: string };
/** webhook-server → discovery. Webhooks cannot be called until the port is opened again. */
export type WebhooksFailed = { type: 'webhooks.failed'; reason: string };

export type WebhooksReport = WebhooksListening | WebhooksFailed;

const row = (from: string, to: string, type: string): CatalogueRow<'webhook-server'> => ({
  ...{ type, from, to },
  ...{ diagram: 'webhook-server', seeds: [] },
});

export const webhookServerCatalogue: readonly CatalogueRow<'webhook-server'>[] = [
  row('discovery', 'webhook-server', 'spawn'),
  row('webhook-server', 'webhook-server/port', 'spawn'),
  row('webhook-server/port', 'webhook-server', 'port.listening'),
  row('webhook-server/port', 'webhook-server', 'port.closed'),
  row('webhook-server', 'discovery', 'webhooks.listening'),
  row('webhook-server', 'discovery', 'webhooks.failed'),
  ...['openLimit', 'pause', 'trial'].map((timer) => row('webhook-server', 'webhook-server', `timer ${timer}`)),
];
