//! A source that says what a test tells it to say, and remembers what it was told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, unbounded};
use tandem_core::source::{Message, Source, SourceError, Status, Write, WriteBack};
use tandem_store::model::{Event, KindSet, Object, SourceId};

pub struct Fake {
    id: SourceId,
    name: &'static str,
    objects: Vec<Object>,
    /// None: it was killed.
    sender: Mutex<Option<Sender<Message>>>,
    messages: Receiver<Message>,
    pub written: Arc<Mutex<Vec<Write>>>,
    /// Barriers are kept instead of being answered.
    pub silent: Mutex<Option<Vec<u64>>>,
    /// Requests for a dump are counted instead of being answered.
    pub asked: Mutex<Option<u32>>,
    /// Nobody can write to it.
    pub shut: AtomicBool,
}

impl Fake {
    /// It has these objects, and says so when it is asked to.
    pub fn new(id: u8, name: &'static str, objects: Vec<Object>) -> Arc<Fake> {
        let (sender, messages) = unbounded();
        Arc::new(Fake {
            id: SourceId(id),
            name,
            objects,
            sender: Mutex::new(Some(sender)),
            messages,
            written: Arc::default(),
            silent: Mutex::default(),
            asked: Mutex::default(),
            shut: AtomicBool::new(false),
        })
    }

    /// The same, and it has said so.
    pub fn told(id: u8, name: &'static str, objects: Vec<Object>) -> Arc<Fake> {
        let fake = Fake::new(id, name, objects);
        fake.resync();
        fake
    }

    fn send(&self, message: Message) {
        if let Some(sender) = &*self.sender.lock().unwrap() {
            sender.send(message).unwrap();
        }
    }

    pub fn say(&self, object: Object) {
        self.send(Message::Events(vec![Event::Upsert(self.id, object)]));
    }

    /// A part of a dump, or of changes.
    pub fn pass(&self, events: &[Event]) {
        self.send(Message::Events(events.to_vec()));
    }

    /// A dump, as it is said.
    pub fn dump(&self) -> Vec<Event> {
        let mut events = vec![Event::BeginSync(self.id, KindSet::ALL)];
        let objects = self.objects.iter().cloned();
        events.extend(objects.map(|o| Event::Upsert(self.id, o)));
        events.push(Event::EndSync(self.id));
        events
    }

    pub fn kill(&self) {
        *self.sender.lock().unwrap() = None;
    }
}

impl Source for Fake {
    fn id(&self) -> SourceId {
        self.id
    }

    fn name(&self) -> &str {
        self.name
    }

    fn messages(&self) -> &Receiver<Message> {
        &self.messages
    }

    fn resync(&self) {
        match &mut *self.asked.lock().unwrap() {
            Some(times) => *times += 1,
            None => self.pass(&self.dump()),
        }
    }

    fn barrier(&self, token: u64) {
        match &mut *self.silent.lock().unwrap() {
            Some(kept) => kept.push(token),
            None => self.send(Message::Barrier(token)),
        }
    }

    fn snapshot(&self) -> Result<Vec<Object>, SourceError> {
        Ok(self.objects.clone())
    }

    fn writer(&self) -> Result<Box<dyn WriteBack>, SourceError> {
        if self.shut.load(Ordering::Relaxed) {
            return Err(SourceError(format!("{} can't be written to", self.name)));
        }
        Ok(Box::new(FakeWriter(Arc::clone(&self.written))))
    }

    fn status(&self) -> Status {
        Status::default()
    }
}

struct FakeWriter(Arc<Mutex<Vec<Write>>>);

impl WriteBack for FakeWriter {
    fn write(
        &mut self,
        writes: &[Write],
        _failed: &mut dyn FnMut(usize, SourceError),
    ) -> Result<(), SourceError> {
        self.0.lock().unwrap().extend_from_slice(writes);
        Ok(())
    }
}
