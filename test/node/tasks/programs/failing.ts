/** Responds to each request on port 8080 with status 500, which proxies do not retry by default. Prints a line per request. */
import { serve } from './server.ts';

serve(8080, ({ method, message }) => {
  console.log(`${method} ${message.url}`);
  return { status: 500 };
});
