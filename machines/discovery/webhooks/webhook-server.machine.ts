import { optionalPortMachine } from '../optional-port.ts';
import { webhookServerTimeline } from '../timeline.ts';

/** The webhooks of the control plane: their port is open while proxies are served. */
export const webhookServerMachine = optionalPortMachine({
  id: 'webhook-server',
  description: 'The webhooks of the control plane, which the API server calls.',
  timeline: webhookServerTimeline,
  listening: 'webhooks.listening',
  failed: 'webhooks.failed',
});
