import { describe, expect, it } from 'vitest';
import { redirectAction } from './redirect.ts';

describe('redirects', () => {
  it('a redirect is permanent by default', () => {
    expect(redirectAction({}, 80).responseCode).toBe(0);
    expect(redirectAction({ redirectCode: 302 }, 80).responseCode).toBe(1);
  });

  it.each([
    [{ scheme: 'https', port: 443 }, 0],
    [{ scheme: 'http', port: 80 }, 0],
    [{ scheme: 'http', port: 443 }, 443],
    [{ port: 8443 }, 8443],
    [{ derivePort: 'FROM_REQUEST_PORT' as const }, 8080],
    [{ derivePort: 'FROM_PROTOCOL_DEFAULT' as const }, 0],
  ])('the redirect %j has port %d', (redirect, port) => {
    expect(redirectAction(redirect, 8080).portRedirect).toBe(port);
  });

  it('a redirect replaces the matched prefix if its path specifies this', () => {
    expect(redirectAction({ uri: '%PREFIX()%/new' }, 80).pathRewriteSpecifier).toEqual({
      case: 'prefixRewrite',
      value: '/new',
    });
    expect(redirectAction({ uri: '/new' }, 80).pathRewriteSpecifier).toEqual({ case: 'pathRedirect', value: '/new' });
  });
});
