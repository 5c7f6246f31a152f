// sse.ts - Server-Sent Events out of text that comes in any pieces. Only what the router sends: event and data.

export interface StreamEvent {
  event: string;
  data: string;
}

export class EventParser {
  private rest = '';

  // The events that are complete with this piece.
  push(piece: string): StreamEvent[] {
    this.rest += piece;
    const events: StreamEvent[] = [];
    for (;;) {
      const end = this.rest.indexOf('\n\n');
      if (end < 0) return events;
      const event = parse(this.rest.slice(0, end));
      this.rest = this.rest.slice(end + 2);
      if (event) events.push(event);
    }
  }
}

function parse(block: string): StreamEvent | null {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    const value = line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (line.startsWith('event:')) event = value;
    if (line.startsWith('data:')) data.push(value);
  }
  return data.length > 0 ? { event, data: data.join('\n') } : null;
}
