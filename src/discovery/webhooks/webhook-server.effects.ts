import { webhookServerMachine } from '../../../machines/discovery/webhooks/webhook-server.machine.ts';
import type { ListenAddress } from '../listen-address.ts';
import { optionalPort } from '../optional-port.ts';
import { WebhookServer, type WebhookServerOptions } from './webhook-server.ts';

/** @param options called when the port is opened, because the certificate is known by then */
export function webhookServerWithEffects(
  address: ListenAddress,
  options: () => Omit<WebhookServerOptions, 'address' | 'onFailed'>,
) {
  const port = optionalPort(address, (onFailed) => new WebhookServer({ ...options(), address, onFailed }));
  return webhookServerMachine.provide({ actors: { port } });
}
