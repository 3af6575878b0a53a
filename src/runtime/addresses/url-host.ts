/** Host of a URL, without the brackets of an IPv6 address. */
export function hostOfUrl({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
