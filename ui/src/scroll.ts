// Scrolling through more pixels than an element may have.
//
// Up to MOST pixels the element is as high as its content. Beyond, it stands for pages of an
// offset that is added to scrollTop: small movements are exact and smooth, a jump of the thumb is
// proportional. (The method of SlickGrid.)
const MOST = 8_000_000;

export class Scroll {
  height = 0; // of the element
  offset = 0;
  private whole = 0;
  private pages = 1;
  private pageHeight = 0;
  private slack = 0;
  private before = 0;

  constructor(readonly rowHeight: number) {}

  resize(rows: number) {
    this.whole = rows * this.rowHeight;
    if (this.whole <= MOST) {
      this.height = this.pageHeight = this.whole;
      this.pages = 1;
      this.slack = 0;
      this.offset = 0;
    } else {
      this.height = MOST;
      this.pageHeight = MOST / 100;
      this.pages = Math.floor(this.whole / this.pageHeight);
      this.slack = (this.whole - MOST) / (this.pages - 1);
    }
  }

  top(el: HTMLElement) { return (el.scrollTop + this.offset) / this.rowHeight; }

  // Scrolls to a place in pixels of the whole.
  to(el: HTMLElement, y: number) {
    y = Math.max(0, Math.min(y, this.whole - el.clientHeight));
    this.offset = this.pages > 1 ? Math.round(Math.min(this.pages - 1, Math.floor(y / this.pageHeight)) * this.slack) : 0;
    this.before = y - this.offset;
    if (Math.abs(el.scrollTop - this.before) >= 1) el.scrollTop = this.before;
    this.before = el.scrollTop;
  }

  scrolled(el: HTMLElement) {
    const now = el.scrollTop;
    const moved = Math.abs(now - this.before);
    if (!moved) return;
    this.before = now;
    if (this.pages === 1) return;
    if (moved < el.clientHeight) { this.to(el, now + this.offset); return; }
    const room = this.height - el.clientHeight;
    const page = Math.min(this.pages - 1, Math.floor((now * (this.whole - el.clientHeight)) / room / this.pageHeight));
    this.offset = Math.round(page * this.slack);
  }
}
