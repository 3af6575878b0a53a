/** A URL without its user name and password, for messages. */
export function urlWithoutCredentials(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return url;
  if (parsed.username === '' && parsed.password === '') return url;
  parsed.username = '';
  parsed.password = '';
  return parsed.href;
}
